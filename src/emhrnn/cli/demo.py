"""`emhrnn demo`: a full example on generated data."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, Quiet, Settings, option

CONTENTS = {"data", "run", "report.html", "report.json"}


def demo(
    out: Annotated[Path, option("Folder to write to.", "FOLDER", shown=True)] = Path("demo"),
    seed: Annotated[int, option("Seed of the data and of the training.", "N", shown=True, min=0)] = 0,
    set_: Settings = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a full example on generated reviews: train, compare with TF-IDF, explain three documents. Two minutes.

    \b
    Examples:
      emhrnn demo
      emhrnn demo --out example --seed 1

    Writes FOLDER with data/ (training and test reviews), run/ (the trained model), report.html and report.json. An
    earlier demo at the same place is replaced; any other folder is refused.
    """
    import shutil

    from emhrnn.cli.output import aligned, percent, print_json, say
    from emhrnn.demo import demo_config, run_demo
    from emhrnn.explain.terminal import print_explanation

    demo_config(seed, set_ or ())  # check settings before an earlier demo is removed
    existed = _clear(out)
    try:
        report = run_demo(
            out, seed=seed, assignments=set_ or (), progress=not (quiet or json), say=(lambda _: None) if json else say
        )
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        if existed:
            out.mkdir()
        raise
    if json:
        print_json(report.to_dict())
        return
    rows = [["", "accuracy", "macro-F1"]]
    rows += [[row.name, percent(row.accuracy), percent(row.macro_f1 or 0)] for row in report.rows]
    say(f"\n{report.documents['test']:,} test documents\n" + aligned(rows))
    say(
        "\nPhrases are learned from ratings and punctuation, without phrase labels. Their ends agree with those of the "
        f"grammar at F1 {percent(report.boundaries.f1)}; random ends at the same rate: "
        f"{percent(report.chance_boundaries.f1)}"
    )
    for explanation in report.explanations:
        say("")
        print_explanation(explanation)
    say(f"\nThe same as a page: {out / 'report.html'}   ({report.seconds:.0f} s)\n\nNext")
    for step in report.next_steps:
        say(f"  {step.why + ':':<28} {step.command}")


def _clear(out: Path) -> bool:
    """Remove an earlier demo. True if an empty folder was there. Anything else than a finished demo is refused."""
    import shutil

    from emhrnn.errors import DataError

    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the demo needs a folder; give another name with --out")
    if not out.exists() or not any(out.iterdir()):
        return out.exists()
    names = {path.name for path in out.iterdir()}
    if not (names <= CONTENTS and "report.json" in names and _is_report(out / "report.json")):
        raise DataError(f"{out} exists and is not a finished demo; give another folder with --out, or remove it")
    shutil.rmtree(out)
    return False


def _is_report(path: Path) -> bool:
    from emhrnn.files import from_json

    try:
        report = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and "tfidf_accuracy" in report and "phrase_f1" in report
