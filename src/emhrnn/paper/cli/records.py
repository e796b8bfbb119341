"""`emhrnn paper evidence`, `check`, `data`, `prepare`, `chunks` and `segmentations`: reports and checks of records and
published data, text once into word ids, and learned phrases beside those of linguists, and in place of others.
"""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import (
    GUESSED,
    Data,
    DataOptions,
    Format,
    LabelColumn,
    Quiet,
    RunFolder,
    Split,
    TextColumn,
    WeightColumn,
    argument,
    flag,
    option,
)
from emhrnn.cli.output import Answer, complain, percent, report_at, tell_of_rows


def evidence(
    report: Annotated[bool, flag("--report", "Write the report of the records that are there.")] = False,
    results: Annotated[Path, option("Folder with the records.", "FOLDER", shown=True)] = Path("results"),
    out: Annotated[Path | None, option("Folder to write to.", "FOLDER", shown="the results")] = None,
) -> Answer:
    """Learned segmentations of phrase evidence against fixed ones, and beside the rows of table 2, with paired tests.

    \b
    Each set is a comparison in RESULTS/evidence-SET, made by
      emhrnn compare SET=FILE --models 'learned=evidence,words=evidence[model.segmentation=words],...' \\
          --reference learned --out RESULTS/evidence-SET
    Example:
      emhrnn paper evidence --report

    Writes evidence.md and evidence.json from these records and those of RESULTS/table2. Nothing is trained.
    """
    from emhrnn.errors import ConfigError
    from emhrnn.paper.evidence import report_evidence

    if not report:
        raise ConfigError("this command only reports; give --report, and train new sets with `emhrnn compare`")
    out = out or results
    found = report_evidence(results, out)
    names = ", ".join(one.name for one in found.sets)
    return Answer(found.to_dict(), f"{names}: {out / 'evidence.md'}, as data {out / 'evidence.json'}")


def check(
    root: Annotated[Path, argument("Folder of a checkout; by default this one.", "FOLDER")] = Path("."),
) -> Answer:
    """Check that every figure which the README and the docs state stands in the kept records.

    \b
    Example:
      emhrnn paper check

    Recomputes table 2 and the report of phrase evidence from their runs, and looks up each figure in per cent or points
    in the results that its paragraph names. The exit code is 1 if one differs or has no record. Nothing is trained.
    """
    from emhrnn.paper.check import check_records

    problems = check_records(root)
    told = f"{len(problems)} figures or tables differ from the records." if problems else "All figures have a record."
    facts = {"problems": [asdict(problem) for problem in problems]}
    return Answer(facts, "\n".join([*map(str, problems), told]), code=1 if problems else 0)


def data(
    folder: Annotated[Path, argument("Folder that holds the data sets, or is to hold them.", "FOLDER")] = Path("data"),
) -> Answer:
    """Say for each published set of table 2 where its owner gives it out, and check what was put in place.

    \b
    Example:
      emhrnn paper data sets

    Nothing is downloaded. Put the files into FOLDER or a folder in it, as their archives hold them. Their size, SHA-256
    and number of documents are shown; archives are compared with the published MD5, where there is one.
    """
    from emhrnn.paper.table2.sets import put_in_place

    sets, lines = put_in_place(folder), list[str]()
    for one in sets:
        published = one.published
        lines.append(f"{published.name} ({published.column}), {published.owner}\n  {one.verdict}")
        for file in one.files:
            of = "" if file.documents is None else f", {file.documents:,} documents"
            lines.append(f"  {file.name}: {file.bytes:,} bytes{of}, sha256 {file.sha256}")
        if not one.whole:
            lines.append(f"  download {published.archive} from {published.address}")
    return Answer({"sets": [asdict(one) for one in sets]}, "\n".join(lines))


def prepare(
    data: Data,
    out: Annotated[Path, option("Folder for the prepared corpus.", "FOLDER")],
    like: Annotated[
        Path | None,
        option("Use the words, classes and text settings of this run, to evaluate it on DATA.", "RUN", shown="none"),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weight_column: WeightColumn = None,
    format: Format = None,
    split: Split = None,
    min_count: Annotated[
        int, option("Drop words seen less often; training has its own limit, too.", "N", shown=True, min=1)
    ] = 1,
    lowercase: Annotated[bool, option("Read words in lower case.", shown=True)] = True,
    max_sentence_words: Annotated[int | None, option("Cut longer sentences.", "N", shown="no cap", min=1)] = None,
    max_sentences: Annotated[int | None, option("Cut longer documents.", "N", shown="no cap", min=1)] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace a corpus that is at --out.")] = False,
    strict: Annotated[bool, flag("--strict", "Refuse rows that would be skipped or repaired.")] = False,
    quiet: Quiet = False,
) -> Answer:
    """Turn a file of any size into a prepared corpus: split, tokenised, encoded, memory-mapped, checksummed.

    \b
    Examples:
      emhrnn paper prepare reviews.jsonl.gz --out reviews.corpus
      emhrnn paper prepare test.csv --out test.corpus --like run

    Training on a file does this by itself; prepare when you use the same data more than once. The report counts the
    rows that were skipped (no text, no label), repaired (broken UTF-8, NUL) or cut (docs/data.md).
    """
    from emhrnn.corpus import Columns, TextSettings
    from emhrnn.corpus import prepare as prepare_corpus
    from emhrnn.text import TextLimits
    from emhrnn.text.language import AUTO

    columns = Columns(text=text_column, label=label_column, weight=weight_column)
    limits = TextLimits(max_words_per_sentence=max_sentence_words, max_sentences=max_sentences)
    vocabulary, classes, text = None, None, TextSettings(language=AUTO, lowercase=lowercase, limits=limits)
    if like is not None:
        from emhrnn.training.run import load_run

        if text != TextSettings(language=AUTO) or min_count != 1:
            from emhrnn.errors import ConfigError

            raise ConfigError("--like takes words and text settings from the run; leave out the others")
        run = load_run(like)
        vocabulary, classes, text = run.vocabulary, run.classes, run.text
    corpus = prepare_corpus(
        data, out, format=format, columns=columns, split=split, vocabulary=vocabulary, classes=classes, text=text,
        min_count=min_count, strict=strict, overwrite=overwrite, progress=not quiet,
    )  # fmt: skip
    words = ["train", str(out), "--out", "run"] if like is None else ["evaluate", str(like), str(out)]
    told = f"{corpus.report}\n\nNext: emhrnn {shlex.join(words)}"
    return Answer({"corpus": str(out), **corpus.report.to_dict()}, told)


def chunks(
    run: RunFolder,
    conll: Annotated[Path, argument("conll2000.zip, or a file of its format.", "CONLL")],
    other: Annotated[list[Path] | None, option("Another run; may be repeated.", "RUN")] = None,
    part: Annotated[str, option("train or test, of a zip.", "NAME", shown=True)] = "test",
    out: Annotated[Path, option("Folder to write to.", "FOLDER", shown=True)] = Path("runs/chunks"),
    seed: Annotated[int, option("Seed of the random segmentation.", "N", shown=True, min=0)] = 0,
) -> Answer:
    """Do phrase ends that were learned from labels alone agree with gold chunks? Precision, recall, F1.

    \b
    Compared with random ends, every K words, punctuation and every word, at the same rate where possible.
    Example:
      emhrnn paper chunks run conll2000.zip --out results

    Ends of sentences are left out. Writes chunks.md and chunks.json.
    """
    from emhrnn.paper.phrases import chunk_table

    table = chunk_table([run, *(other or [])], conll, part, out, seed=seed)
    return Answer(table.to_dict(), f"{table.to_markdown()}\n{report_at(out, 'chunks')}")


def segmentations(run: RunFolder, data: Data, read: DataOptions = GUESSED, quiet: Quiet = False) -> Answer:
    """Score a run of evidence by the phrases alone that explanations show, and by the best segmentation alone.

    \b
    Examples:
      emhrnn paper segmentations run test.csv
      emhrnn paper segmentations run all.parquet --split test --json

    The prediction is a sum over all segmentations. Nothing is trained again, and nothing is written.
    """
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
    facts = {**asdict(found), "skipped": report.skipped, "repaired": report.repaired}
    return Answer(
        facts,
        f"{found.documents:,} documents. Accuracy by the sum over all segmentations {percent(found.exact)}, by the "
        f"best one alone {percent(found.best)}, by the shown phrases alone {percent(found.shown)} "
        f"({found.words_per_phrase:.1f} words each; {percent(found.differs)} of the labels differ)",
    )
