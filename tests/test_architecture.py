"""docs/architecture.md is what the source tree says."""

from tools.architecture import PAGE, imports, page, reduced


def test_the_committed_file_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make architecture"


def test_the_product_does_not_import_the_paper() -> None:
    graph = imports()
    assert [part for part, uses in graph.items() if "paper" in uses] == []
    assert {"text", "corpus", "models", "training", "cli"} <= graph.keys()


def test_imports_that_follow_from_others_are_left_out() -> None:
    assert reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
