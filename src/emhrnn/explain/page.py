"""The frame of every page we write: one file, no script, no request, one stylesheet that the page's policy names."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from emhrnn.explain.inert import escape


@cache
def stylesheet() -> str:
    return files("emhrnn.explain").joinpath("page.css").read_text(encoding="utf-8")


@cache
def content_security_policy() -> str:
    """Nothing may load, run or be sent. The hash admits our stylesheet and no other, so that markup which slipped
    through the escaping could still neither style nor script the page."""
    digest = base64.b64encode(hashlib.sha256(stylesheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def page(title: str, body: str) -> str:
    """A whole HTML file. `body` is markup that is already escaped; `title` is text."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{stylesheet()}</style>
</head>
<body class="emhrnn">
<main>
{body}
</main>
</body>
</html>
"""


def percent(fraction: float | int) -> str:
    """A weight or probability for people: no digits that nobody reads, and no 0% for what is not zero."""
    if 0 < fraction < 0.005:
        return "<1%"
    if 0.995 <= fraction < 1:
        return ">99%"
    return f"{fraction:.0%}"
