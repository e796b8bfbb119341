"""The viewer on a tiny run: as an application for a test client, and as a real server for a browser."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

fastapi = pytest.importorskip("fastapi", reason="needs the extra serve")

import uvicorn  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402

from emhrnn.serve.app import application  # noqa: E402
from emhrnn.serve.connections import bound_connections  # noqa: E402
from emhrnn.serve.limits import ServerLimits  # noqa: E402
from emhrnn.training.pack import located  # noqa: E402
from tests.behaviour.commands import GOOD, write_rows  # noqa: E402
from tests.explain.browser import chromium  # noqa: E402

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
SMALL = ServerLimits(
    body_bytes=4000,
    upload_bytes=20_000,
    texts=3,
    words=100,
    seconds=20.0,
    body_seconds=1.0,
    waiting=50,
    rows=40,
    row_characters=5_000,
    unpacked_bytes=1 << 20,
    jobs=3,
)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder: good files, one with markup in its name and rows, and a link that leads out."""
    folder = tmp_path_factory.mktemp("served") / "data"
    (folder / "below").mkdir(parents=True)
    texts = [("The soup was good. We liked it.", "good"), ("The soup was bad. We hated it.", "bad")] * 6
    write_rows(folder / "reviews.csv", texts)
    write_rows(folder / "below" / "more.jsonl", [*texts, (f"{HOSTILE} was good.", "good"), ("   ", "bad")])
    write_rows(folder / "<img src=x onerror=alert(3)>.csv", [(f"{HOSTILE} soup.", "<b>odd</b>"), ("Bad soup.", "bad")])
    (folder / "notes.md").write_text("not data", encoding="utf-8")
    secret = write_rows(folder.parent / "secret.csv", [("A secret.", "good"), ("Another.", "bad")])
    (folder / "link.csv").symlink_to(secret)
    (folder / "way").symlink_to(folder.parent)
    return folder


@pytest.fixture(scope="session")
def app(made: Path, data: Path) -> Any:
    return application([made / "run", made / "run"], data=data, limits=SMALL)


@pytest.fixture(scope="session")
def client(app: Any) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as opened:
        yield opened


@pytest.fixture(scope="session")
def address(made: Path, data: Path) -> Iterator[str]:
    """A server of its own, with the limits that people have."""
    with running(application([made / "run", made / "run"], data=data)) as base:
        yield base


class running:  # noqa: N801
    """`with running(app) as address`: uvicorn in a thread, on a free port."""

    def __init__(self, app: Any, limits: ServerLimits | None = None, **settings: Any) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        config = bound_connections(uvicorn.Config(app, log_level="warning", **settings), limits or ServerLimits())
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        for _ in range(600):
            if self.server.started:
                break
            time.sleep(0.05)
        assert self.server.started
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.listener.close()


# ---------------------------------------------------------------------- a real browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page that must not complain and must ask our server only."""
    context = browser.new_context(base_url=address, viewport={"width": 1100, "height": 850})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: trouble.append(dialog.message))
    opened.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith(address) else None)
    yield opened
    context.close()
    assert [told for told in trouble if "422" not in told] == []  # a refusal is not a fault, but the browser tells it


@pytest.fixture(scope="module")
def demo(browser: Any) -> Iterator[Any]:
    """A page on the model of the package: it is sure of what it says, and fast on long documents."""
    with running(application([located(Path("demo"))])) as base:
        context = browser.new_context(base_url=base, viewport={"width": 1280, "height": 800})
        yield context.new_page()
        context.close()


def read(page: Any, text: str = GOOD) -> None:
    page.goto("about:blank")  # or a page at the same address is loaded again, with the text that it had
    page.goto("/")
    page.get_by_label("Your document").fill(text)
    page.get_by_role("button", name="Read it").click()
    page.wait_for_selector(".reading")
    page.wait_for_selector("#reading[aria-busy=false]")


def settled(page: Any) -> None:
    page.wait_for_selector("#reading[aria-busy=false] .reading")


def in_sight(page: Any, selector: str) -> bool:
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    return bool(box) and box["y"] >= 0 and box["y"] + box["height"] <= size["height"]
