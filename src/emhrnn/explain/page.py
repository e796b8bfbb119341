"""The frame of every page we write: one file, no request, no script, and no style but that which its policy names."""

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


def page(title: str, body: str) -> str:
    """A whole HTML file. `body` is markup that is already escaped; `title` is text. Nothing may load or be sent: the
    hash admits our stylesheet and no other, so that markup which slipped through the escaping could not style the
    page."""
    style = stylesheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
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


def signed(effect: float) -> str:
    """An effect on the log-odds for people: the sign says which way, also without colour."""
    return f"{effect:+.2f}".replace("-", "\u2212") if abs(effect) >= 0.005 else "0"
