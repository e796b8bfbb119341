"""The documentation site builds strictly, loads nothing from the network, and is accessible."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.explain.browser import chromium, violations

pytest.importorskip("mkdocs", reason="needs the extra docs (make install)")
ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc=["'](https?:)?//|<link[^>]*\shref=["'](https?:)?//""")
PAGES = ("index", "own_csv", "explanations", "api", "reference/settings", "reference/http")


def build(out: Path, config: Path = ROOT / "mkdocs.yml") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", config, "--site-dir", out],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_site_is_small_and_loads_nothing_from_elsewhere(site: Path) -> None:
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < 10 * MEGABYTE
    pages = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert {f"{name}.html" for name in PAGES} <= pages.keys()
    assert [name for name, text in pages.items() if LOADED.search(text)] == []


def test_reference_pages_come_from_the_code(site: Path) -> None:
    assert "--weight-column" in (site / "reference" / "cli.html").read_text(encoding="utf-8")
    assert "model.table_documents" in (site / "reference" / "settings.html").read_text(encoding="utf-8")
    assert "/v1/predict" in (site / "reference" / "http.html").read_text(encoding="utf-8")
    assert "predict_proba" in (site / "api.html").read_text(encoding="utf-8")


def test_no_accessibility_violation_in_light_and_dark(address: str) -> None:
    with chromium() as browser:
        for scheme in ("light", "dark"):
            context = browser.new_context(base_url=address, color_scheme=scheme)
            page, foreign = context.new_page(), list[str]()
            page.on("request", lambda asked, seen=foreign: seen.append(asked.url))
            for name in PAGES:
                page.goto(f"/{name}.html", wait_until="networkidle")
                assert violations(page) == [], f"{name}, {scheme}"
            assert [url for url in foreign if not url.startswith(address)] == []
            context.close()
