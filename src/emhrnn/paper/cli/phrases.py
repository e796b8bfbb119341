"""`emhrnn paper chunks` and `segmentations`: learned phrases beside those of linguists, and in place of others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from emhrnn.cli.options import GUESSED, Data, DataOptions, Json, Quiet, RunFolder, argument, option

if TYPE_CHECKING:
    from emhrnn.corpus import Report
    from emhrnn.paper.phrases import SegmentationComparison, ShownPhrases
    from emhrnn.training.data import Named


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

    runs = [run, *(other or [])]
    names = " ".join([run.name, conll.name, *(f"--other {folder.name}" for folder in runs[1:])])
    table = chunk_table(
        runs, conll, part, out, command=f"emhrnn paper chunks {names} --part {part} --seed {seed}", seed=seed
    )
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
    """Score a run with its learned phrases and with others: does it need the learned ones?

    \b
    Examples:
      emhrnn paper segmentations run test.csv
      emhrnn paper segmentations run all.parquet --split test --json

    Nothing is trained again. em-hrnn: the others are whole sentences, single words, phrases that end at punctuation,
    random ones and phrases of 4 words; and the mean prediction over phrases that are drawn by their probabilities.
    evidence: the phrases alone that explanations show, in place of the sum over all segmentations. Writes nothing: the
    table goes to stdout.
    """
    from emhrnn.cli.output import complain, print_json, say, tell_of_rows
    from emhrnn.training.data import learned_from

    given = read.named(data)
    comparison, report = compare_run(run, given, progress=not quiet)
    tell_of_rows(str(data), report.skipped, report.repaired)
    if learned_from(run, given):
        complain(f"{data} holds documents that {run} was trained on: its scores on them say little about new ones")
    if json:
        print_json({**comparison.to_dict(), "skipped": report.skipped, "repaired": report.repaired})
    else:
        say(told(comparison))


def compare_run(
    folder: Path, data: "Named", *, progress: bool = True
) -> "tuple[SegmentationComparison | ShownPhrases, Report]":
    """The run with its learned phrases and with other segmentations; and the report on the data.

    Raises:
        ConfigError: the run has no phrases, did not learn them, or its documents have several labels.
    """
    from emhrnn.errors import ConfigError
    from emhrnn.models.evidence_reader import EvidenceReader
    from emhrnn.paper.models.em_hrnn import EMHRNN
    from emhrnn.paper.phrases import compare_segmentations, compare_shown
    from emhrnn.training.data import labelled_corpus
    from emhrnn.training.run import load_run

    run = load_run(folder)
    if run.multi_label:
        raise ConfigError("documents of this run have several labels, and this needs one for each; give another run")
    if run.config.segmentation != "learned":
        raise ConfigError(f"this run's phrases are {run.config.segmentation}, and were not learned; give another")
    model = run.model
    if not isinstance(model, EMHRNN | EvidenceReader):
        raise ConfigError(
            f"the phrases of {run.config.model.name} cannot be replaced; give a run of evidence or em-hrnn"
        )
    with labelled_corpus(run, data, why="to compare with", progress=progress) as corpus:
        if isinstance(model, EvidenceReader):
            return compare_shown(model, corpus), corpus.report
        words, rate = run.vocabulary.words, run.config.em.rate
        return compare_segmentations(model, corpus, words, rate=rate, temperature=run.temperature), corpus.report


def told(comparison: "SegmentationComparison | ShownPhrases") -> str:
    """The segmentations as text, one row each."""
    from emhrnn.cli.output import aligned, percent
    from emhrnn.paper.phrases import ShownPhrases
    from emhrnn.paper.significance import p_value

    if isinstance(comparison, ShownPhrases):
        return (
            f"{comparison.documents:,} documents. Accuracy by the sum over all segmentations "
            f"{percent(comparison.exact)}, by the best one alone {percent(comparison.best)}, by the shown phrases "
            f"alone {percent(comparison.shown)} ({comparison.words_per_phrase:.1f} words each; "
            f"{percent(comparison.differs)} of the labels differ)"
        )
    rows = [["phrases", "accuracy", "vs learned", "p", "other labels", "words per phrase"]]
    rows += [
        [
            cut.name,
            percent(cut.accuracy),
            "-" if cut.against is None else f"{100 * cut.against.difference:+.1f}",
            "-" if cut.against is None else p_value(cut.against.p),
            percent(cut.differs),
            f"{cut.words_per_phrase:.1f}",
        ]
        for cut in comparison.cuts
    ]
    return (
        f"{comparison.documents:,} documents, the same network with other phrases:\n\n{aligned(rows)}\n\n"
        f"Right with every segmentation: {percent(comparison.always)}; with at least one: "
        f"{percent(comparison.in_reach)}\n"
        f"Phrase ends of a document hold {comparison.boundary_bits:.0f} bits on average; its label gives "
        f"{comparison.label_bits:.2g} of them"
    )
