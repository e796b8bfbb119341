"""The drawing of a document: every word once and in order, nothing beyond its line, markup inert."""

from xml.etree import ElementTree

import pytest

from emhrnn.explain.escape import visible
from emhrnn.paper.analysis.figures import COLUMNS, LEFT, LETTER, _Painter, document_svg
from tests.explain.documents import HOSTILE, REVIEW, explained

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("text", [REVIEW, HOSTILE, "x" * 200 + " so.", "one.", REVIEW * 5])
def test_words_in_order_within_the_lines(text: str) -> None:
    explanation = explained(text, 2)
    drawn = ElementTree.fromstring(document_svg(explanation, "A <title>"))
    texts = [node for node in drawn.iter(f"{SVG}text") if node.get("textLength")]
    words = [node.text for node in texts if node.get("class") != "muted"]
    assert words == [visible(word.text) for word in explanation.words]
    signs = [node.text for node in texts if node.get("class") == "muted"]
    assert signs == ["//"] * (len(explanation.phrases) - len(explanation.sentences))
    for node in texts:
        assert node.text is not None
        right = float(node.get("x", 0)) + float(node.get("textLength", 0))
        assert right <= LEFT + LETTER * max(COLUMNS, len(node.text)) + 0.1
    assert {node.tag.removeprefix(SVG) for node in drawn.iter()} == {"svg", "title", "style", "rect", "text"}


def test_pieces_do_not_overlap() -> None:
    explanation = explained(REVIEW, 5)
    painter = _Painter(explanation)
    for sentence in explanation.sentences:
        end = {0: -1}
        for piece in painter.pieces(sentence):
            assert piece.column > end.get(piece.line, -1) or piece.column == 0
            end[piece.line] = piece.column + len(piece.text) - 1
