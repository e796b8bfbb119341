"""A page as a browser's parser would see it."""

from html.parser import HTMLParser

OUR_ELEMENTS = (
    "html head meta title style body main h1 h2 h3 p b ul section span label input article header "
    "table thead tbody tr th td svg rect q ol li details summary u i div code"
)
OUR_ATTRIBUTES = (
    "lang charset http-equiv content name class type aria-hidden aria-label scope "
    "viewbox preserveaspectratio width height dir data-effect title"
)
ELEMENTS, ATTRIBUTES = set(OUR_ELEMENTS.split()), set(OUR_ATTRIBUTES.split())
VOID = {"meta", "input", "br", "link"}
ENDS = {  # what a start tag closes, where its end tag may be left out
    "td": {"td", "th"},
    "th": {"td", "th"},
    "tr": {"td", "th", "tr"},
    "tbody": {"td", "th", "tr", "thead"},
    "li": {"li"},
}
IMPLIED = {  # what an end tag closes with it
    "table": {"td", "th", "tr", "tbody"},
    "ol": {"li"},
}


class Page(HTMLParser):
    """What a browser would see: elements, attributes, text by element class; and that every element is closed, by
    its own end tag or as HTML says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[tuple[str, str]] = []
        self.text = ""
        self.first_prose: list[str] = []
        self.style = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._close(ENDS.get(tag, set()))
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        self._close(IMPLIED.get(tag, set()))
        assert self.open.pop()[0] == tag

    def _close(self, implied: set[str]) -> None:
        while self.open and self.open[-1][0] in implied:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "style":
            self.style += data
            return
        self.text += data
        classes = [kind for _, kind in self.open]
        if "prose" in classes and not any("inside" in kind for kind in classes) and "break" not in classes[-1]:
            self.first_prose.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment came through: {data}")
