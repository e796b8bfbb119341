"""`emhrnn paper chunks` and `segmentations`: learned phrases beside those of linguists, and in place of others."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import GUESSED, Data, DataOptions, Json, Quiet, RunFolder, argument, option


def chunks(
    run: RunFolder,
    conll: Annotated[Path, argument("conll2000.zip, or a file of its format.", "CONLL")],
    other: Annotated[list[Path] | None, option("Another run; may be repeated.", "RUN")] = None,
    part: Annotated[str, option("train or test, of a zip.", "NAME", shown=True)] = "test",
    out: Annotated[Path, option("Folder to write to.", "FOLDER", shown=True)] = Path("runs/chunks"),
    seed: Annotated[int, option("Seed of the random segmentation.", "N", shown=True, min=0)] = 0,
    json: Json = False,
) -> None:
    """Do phrase ends that were learned from labels alone agree with gold chunks? Precision, recall, F1.

    \b
    Compared with random ends, every K words, punctuation and every word, at the same rate where possible.
    Example:
      emhrnn paper chunks run conll2000.zip --out results

    Ends of sentences are left out. Writes chunks.md and chunks.json.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.paper.phrases import chunk_table

    table = chunk_table([run, *(other or [])], conll, part, out, seed=seed)
    if json:
        print_json(table.to_dict())
    else:
        say(table.to_markdown())
        say(f"This is in {out / 'chunks.md'}, as data in {out / 'chunks.json'}.")


def segmentations(
    run: RunFolder,
    data: Data,
    read: DataOptions = GUESSED,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a run of evidence by the phrases alone that explanations show, and by the best segmentation alone.

    \b
    Examples:
      emhrnn paper segmentations run test.csv
      emhrnn paper segmentations run all.parquet --split test --json

    The prediction is a sum over all segmentations. Nothing is trained again, and nothing is written.
    """
    from emhrnn.cli.output import complain, percent, print_json, say, tell_of_rows
    from emhrnn.errors import ConfigError
    from emhrnn.models.evidence_reader import EvidenceReader
    from emhrnn.paper.phrases import compare_shown
    from emhrnn.training.data import labelled_corpus, learned_from
    from emhrnn.training.run import load_run

    given, loaded = read.named(data), load_run(run)
    if not isinstance(loaded.model, EvidenceReader) or loaded.multi_label or loaded.config.segmentation != "learned":
        raise ConfigError(
            f"{run} is not a run of evidence with learned phrases and one label for each document; give another"
        )
    with labelled_corpus(loaded, given, why="to compare with", progress=not quiet) as corpus:
        found, report = compare_shown(loaded.model, corpus), corpus.report
    tell_of_rows(str(data), report.skipped, report.repaired)
    if learned_from(run, given):
        complain(f"{data} holds documents that {run} was trained on: its scores on them say little about new ones")
    if json:
        print_json({**found.to_dict(), "skipped": report.skipped, "repaired": report.repaired})
        return
    say(
        f"{found.documents:,} documents. Accuracy by the sum over all segmentations {percent(found.exact)}, by the "
        f"best one alone {percent(found.best)}, by the shown phrases alone {percent(found.shown)} "
        f"({found.words_per_phrase:.1f} words each; {percent(found.differs)} of the labels differ)"
    )
