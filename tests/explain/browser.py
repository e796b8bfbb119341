"""A real browser for the tests that look at a page."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium that may not reach the network; skips the test, and says why, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the playwright package (make install)")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("needs Chromium on the machine, for example: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@cache
def axe_core() -> str:
    """The script of axe-core, from npm and never part of this repository; skips the test where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm on the machine, for example: apt-get install npm")
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"],
            cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        script = Path(folder) / "node_modules" / "axe-core" / "axe.min.js"
        if not script.is_file():
            pytest.skip(f"axe-core could not be installed from npm: {done.stderr[-200:]}")
        return script.read_text(encoding="utf-8")


def violations(page: Any) -> list[tuple[str, list[str]]]:
    """Of accessibility, of any weight: rules, each with the first elements that break it."""
    page.evaluate(axe_core())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]][:3]) for rule in found]


def screenshots() -> Path:
    """Where CI keeps them: build/screenshots."""
    folder = Path(__file__).parents[2] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
