"""One pass over the data for one or two runs: everything that the reports show."""

from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from emhrnn.corpus.record import Record
from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.lexicon import Gathered, measured
from emhrnn.paper.analysis.analysis import Agreement, Analysis, Example, Lexicon, ModelFacts
from emhrnn.paper.analysis.passing import Draws, Pass, Question, go_through
from emhrnn.paper.analysis.reading import Reader, ready
from emhrnn.paper.analysis.tally import Tally
from emhrnn.paper.analysis.ties import Ties
from emhrnn.paper.provenance import commit, machine
from emhrnn.paper.sampling import Reservoir
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run

TIED_WORDS = 5  # of each class
LEXICON_DOCUMENTS = 3000  # drawn for the lexicon
IMPORTANT = 20  # most frequent words that are told
SHOWN_WORDS = 120  # the document that is shown in full has about so many


def analyse(
    folders: Sequence[Path],
    data: Named,
    question: Question,
    *,
    command: str,
    names: Sequence[str] = (),
    progress: bool = True,
) -> Analysis:
    """How one run, or two, read the documents of `data`. They are called by `names`, or by those of their folders.

    Raises:
        EmhrnnError: a folder is no run, a model has no weights to look at, or the data cannot be read or is empty.
    """
    if not 1 <= len(folders) <= 2:
        raise ConfigError(f"{len(folders)} runs were given; give one, or two to compare")
    runs = [load_run(folder) for folder in folders]
    readers = [
        Reader(name, run, Tally(run.vocabulary), None if question.words else Ties(run.vocabulary, len(run.classes)))
        for name, run in zip(names or names_of(folders, runs), runs, strict=True)
    ]
    draws = Draws(Reservoir(question.documents, question.seed), Reservoir(LEXICON_DOCUMENTS, question.seed))
    done = Pass(readers, draws)
    with ready(readers):
        go_through(done, data, question, progress=progress)
        return gather(done, data, question, command, progress=progress)


def gather(done: Pass, data: Named, question: Question, command: str, *, progress: bool) -> Analysis:
    first, readers, counted = done.readers[0], done.readers, done.counted
    tied = None
    if first.ties is not None:
        tied = {name: first.ties.top(label, TIED_WORDS) for label, name in enumerate(first.run.classes)}
    words = question.words or tuple(dict.fromkeys(word for some in (tied or {}).values() for word in some))
    drawn = examples(readers, done.draws.compared.drawn)
    pair = len(readers) == 2
    return Analysis(
        data=data.path.name,
        documents=counted.documents,
        words=first.tally.words,
        skipped=counted.skipped,
        classes=first.run.classes,
        tied=tied,
        models=[facts(reader, words, done.draws.lexicon.drawn, question, progress=progress) for reader in readers],
        agreement=agreement_on(drawn) if pair else None,
        agreement_of_all=counted.agreement() if pair else None,
        drawn=drawn,
        shown=min(drawn, key=lambda example: (example.same_word, abs(example.words - SHOWN_WORDS))),
        seed=question.seed,
        making={"command": command, "commit": commit(), "machine": machine()},
    )  # fmt: skip


def examples(readers: Sequence[Reader], drawn: Sequence[Record]) -> list[Example]:
    texts, labels = [record.text for record in drawn], [record.label for record in drawn]
    users, products = [record.user for record in drawn], [record.product for record in drawn]
    columns = [explain_texts(reader.run, texts, labels, users=users, products=products) for reader in readers]
    return [Example(record.where.row, seen) for record, seen in zip(drawn, zip(*columns, strict=True), strict=True)]


def agreement_on(drawn: Sequence[Example]) -> Agreement:
    return Agreement(
        documents=len(drawn),
        same_word=sum(example.same_word for example in drawn),
        same_place=sum(example.same_place for example in drawn),
        chance=sum(1 / example.words for example in drawn) / len(drawn),
    )


def facts(
    reader: Reader, words: Sequence[str], drawn: Sequence[Record], question: Question, *, progress: bool
) -> ModelFacts:
    lower = reader.run.text.lowercase
    return ModelFacts(
        name=reader.name,
        model=reader.run.config.model.name,
        seed=reader.run.config.training.seed,
        accuracy=reader.accuracy,
        phrases=reader.tally.phrase_lengths() if reader.has_phrases else None,
        attention=[reader.tally.attention(word.lower() if lower else word) for word in words],
        average=reader.tally.average(),
        important=reader.important.most_common(IMPORTANT),
        lexicon=lexicon(reader, drawn, question.phrases, progress=progress) if reader.has_phrases else (),
    )


def lexicon(reader: Reader, drawn: Sequence[Record], phrases: int, *, progress: bool) -> Lexicon:
    run, gathered = reader.run, Gathered(len(reader.run.classes))
    starts = range(0, len(drawn), 64)
    for start in tqdm(starts, desc="phrases", disable=None if progress else True, leave=False):
        gathered.add(explain_texts(run, [record.text for record in drawn[start : start + 64]]))
    return [(name, measured(run, gathered, label, top=phrases)) for label, name in enumerate(run.classes)]


def names_of(folders: Sequence[Path], runs: Sequence[Run]) -> list[str]:
    """Those of the folders; with the model, or a number, where they are the same."""
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [f"{name} ({run.config.model.name})" for name, run in zip(names, runs, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
    return names
