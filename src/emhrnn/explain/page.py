"""The frame of every page we write: one file, no request, and no style or script but those that its policy names."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from emhrnn.explain.escape import escape


@cache
def stylesheet() -> str:
    """With the widths of bars: the policy of our pages admits no `style` at an element."""
    widths = "".join(f".emhrnn .w{percent} {{ --wide: {percent}%; }}\n" for percent in range(101))
    return files("emhrnn.explain").joinpath("page.css").read_text(encoding="utf-8") + widths


def content_security_policy(style: str, script: str = "") -> str:
    """Nothing may load or be sent. The hashes admit our stylesheet and our script and no other, so that markup which
    slipped through the escaping could still neither style nor script the page."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole HTML file. `body` is markup that is already escaped; `title` is text. `style` is added to the stylesheet;
    a page with a `script` must say the same without it."""
    style = stylesheet() + style
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body class="emhrnn">
<main>
{body}
</main>{f"<script>{script}</script>" if script else ""}
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


def signed(effect: float) -> str:
    """An effect on the log-odds for people: the sign says which way, also without colour."""
    return f"{effect:+.2f}".replace("-", "\u2212") if abs(effect) >= 0.005 else "0"
