"""`emhrnn paper segmentations`."""

from pathlib import Path

from tests.behaviour.commands import TINY, Cli, tiny


def test_a_run_without_phrases_is_refused(cli: Cli, made: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    cli.ok("train", made / "reviews.csv", "--out", plain, *tiny("hn-max"))
    refused = cli.error("paper", "segmentations", plain, made / "test.jsonl")
    assert "the phrases of hn-max cannot be replaced" in refused
    assert "em-hrnn" in refused


def test_the_shown_phrases_of_evidence_are_compared_with_the_sum(cli: Cli, made: Path, tmp_path: Path) -> None:
    run, test = tmp_path / "evidence", made / "test.jsonl"
    cli.ok("train", made / "reviews.csv", "--out", run, *tiny("evidence"))
    found = cli.ok("paper", "segmentations", run, test, "--json").json
    assert found["exact"] == cli.ok("evaluate", run, test, "--json").json["accuracy"]
    assert abs(found["exact"] - found["shown"]) <= found["differs"]
    assert 0 <= found["best"] <= 1
    assert 1 <= found["words_per_phrase"] <= 6
    assert "by the best one alone" in cli.ok("paper", "segmentations", run, test).out


def test_all_segmentations_are_compared(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    test = made / "test.jsonl"
    found = cli.ok("paper", "segmentations", run, test, "--json").json
    cuts = {cut["name"]: cut for cut in found["cuts"]}
    assert list(cuts) == ["learned", "mean of 8 drawn", "none", "words", "punctuation", "random", "every-4"]
    drawn = cuts.pop("mean of 8 drawn")
    assert 0 <= drawn["accuracy"] <= 1
    assert drawn["against"] is not None
    for cut in cuts.values():
        assert found["always"] <= cut["accuracy"] <= found["in_reach"]
        assert abs(cut["accuracy"] - cuts["learned"]["accuracy"]) <= cut["differs"]
    assert cuts["learned"]["differs"] == 0
    scores = cli.ok("evaluate", run, test, "--json").json
    assert cuts["learned"]["accuracy"] == scores["accuracy"]
    assert cuts["learned"]["words_per_phrase"] == scores["phrases"]["mean"]
    assert cuts["words"]["words_per_phrase"] == 1
    assert 1 < cuts["every-4"]["words_per_phrase"] <= 4
    told = cli.ok("paper", "segmentations", run, test).out
    assert "the same network with other phrases" in told
    assert "Right with every segmentation" in told
    assert 0 < found["label_bits"] < found["boundary_bits"]
    assert f" {found['boundary_bits']:.0f} bits" in told
    assert f" {found['label_bits']:.2g} of them" in told
    fixed = tmp_path / "fixed"
    cli.ok("train", made / "reviews.csv", "--out", fixed, *TINY, "--set", "model.segmentation=words")
    refused = cli.error("paper", "segmentations", fixed, test)
    assert "this run's phrases are words, and were not learned; give another" in refused
