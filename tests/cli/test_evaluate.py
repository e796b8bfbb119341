"""`emhrnn evaluate` with other phrases."""

from pathlib import Path

from emhrnn.cli.evaluate import confusion_table
from tests.behaviour.commands import TINY, Cli, tiny


def test_evaluate_cuts_otherwise(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    lengths = {
        rule: cli.ok("evaluate", run, made / "test.jsonl", "--segmentation", rule, "--json").json["phrases"]["mean"]
        for rule in ("words", "every-2", "none")
    }
    assert lengths["words"] == 1
    assert 1 < lengths["every-2"] <= 2 < lengths["none"]
    refused = cli.error("evaluate", run, made / "test.jsonl", "--segmentation", "letters")
    assert "unknown segmentation 'letters'" in refused
    assert "every-K" in refused
    plain = tmp_path / "plain"
    cli.ok("train", made / "reviews.csv", "--out", plain, *tiny("hn-max"))
    for segmentation in ("words", "all"):
        refused = cli.error("evaluate", plain, made / "test.jsonl", "--segmentation", segmentation)
        assert "hn-max" in refused
        assert "--segmentation needs em-hrnn" in refused


def test_evaluate_compares_all_cuts(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    test = made / "test.jsonl"
    found = cli.ok("evaluate", run, test, "--segmentation", "all", "--json").json
    cuts = {cut["name"]: cut for cut in found["cuts"]}
    assert list(cuts) == ["learned", "mean of 8 drawn", "none", "words", "punctuation", "random", "every-4"]
    drawn = cuts.pop("mean of 8 drawn")
    assert 0 <= drawn["accuracy"] <= 1
    assert drawn["against"] is not None
    for name, cut in cuts.items():
        scores = cli.ok("evaluate", run, test, "--segmentation", name, "--json").json
        assert cut["accuracy"] == scores["accuracy"]
        assert cut["words_per_phrase"] == scores["phrases"]["mean"]
        assert found["always"] <= cut["accuracy"] <= found["in_reach"]
        assert abs(cut["accuracy"] - cuts["learned"]["accuracy"]) <= cut["differs"]
    assert cuts["learned"]["differs"] == 0
    told = cli.ok("evaluate", run, test, "--segmentation", "all").out
    assert "the same network with other phrases" in told
    assert "Right with every segmentation" in told
    assert 0 < found["label_bits"] < found["boundary_bits"]
    assert f" {found['boundary_bits']:.0f} bits" in told
    assert f" {found['label_bits']:.2g} of them" in told
    fixed = tmp_path / "fixed"
    cli.ok("train", made / "reviews.csv", "--out", fixed, *TINY, "--set", "model.segmentation=words")
    refused = cli.error("evaluate", fixed, test, "--segmentation", "all")
    assert "this run's phrases are words, and were not learned; give another" in refused


def test_a_confusion_matrix_fits_the_terminal() -> None:
    names = [f"a rather long name {i}" for i in range(12)]
    counts = [[10 * (i == j) + (i == 3 and j == 4) for j in range(12)] for i in range(12)]
    shown = {width: confusion_table(names, counts, width) for width in (400, 100, 60)}
    for width, table in shown.items():
        assert max(map(len, table.splitlines())) <= width
    assert shown[400].splitlines()[1].split("  ")[-1] == names[-1]
    assert shown[100].splitlines()[1].split() == [str(i) for i in range(1, 13)]
    assert shown[100].splitlines()[-1].startswith("12 a rather long name 11")
    assert shown[60].splitlines()[-1].split("  ")[-2:] == [names[3], names[4]]
    assert "1 error" in shown[60]
