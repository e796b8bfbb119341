"""`emhrnn demo`: everything once, on data that comes with the package."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Json, Quiet


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the reviews and of the training.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="One setting, e.g. training.epochs=3. May be repeated.", metavar="SECTION.KEY=VALUE"
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train on the embedded review corpus, compare with TF-IDF, explain three documents. About a minute."""
    import shutil

    from emhrnn.errors import DataError
    from emhrnn.experiments.demo import run_demo
    from emhrnn.explain.terminal import print_explanation
    from emhrnn.products.cli.printing import percent, print_json, say
    from emhrnn.products.cli.tables import aligned

    if out.exists() and any(out.iterdir()):
        if not (out / "report.json").exists():
            raise DataError(f"{out} exists and is no finished demo; give another folder with --out, or remove it")
        shutil.rmtree(out)
    demo = run_demo(
        out, seed=seed, assignments=set_ or (), progress=not (quiet or json), say=(lambda _: None) if json else say
    )
    report = demo.report
    if json:
        print_json(report.to_dict())
        return
    rows = [["", "accuracy", "macro-F1"]]
    rows += [[row.name, percent(row.accuracy), percent(row.macro_f1 or 0)] for row in report.rows]
    say(f"\n{report.documents['test']:,} test documents\n" + aligned(rows))
    chance = report.chance_boundaries
    say(
        f"\nPhrase ends found without ever being shown: F1 {percent(report.boundaries.f1)}"
        + (f" (random ends of the same rate: {percent(chance.f1)})" if chance is not None else "")
    )
    for explanation in report.explanations:
        say("")
        print_explanation(explanation)
    say(f"\nAll of this as a page: {out / 'report.html'}   ({report.seconds:.0f} s)\n\nNext")
    for step in report.next_steps:
        say(f"  {step.why + ':':<28} {step.command}")
