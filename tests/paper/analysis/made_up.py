"""An analysis with made-up numbers, hostile text in every place that shows any."""

from emhrnn.corpus.record import clean_text
from emhrnn.evaluation.scores import PhraseLengths
from emhrnn.explain.lexicon import Entry
from emhrnn.paper.analysis.analyse import Analysis, ComparedDocument, RunFacts, WordAgreement, WordAttention
from tests.explain.documents import HOSTILE as ANY_HOSTILE
from tests.explain.documents import REVIEW

HOSTILE = clean_text(ANY_HOSTILE)[0]  # as every text is read


def made_up_model(name: str, seed: int) -> RunFacts:
    words = [
        WordAttention(word, 7, 0.5, 0.25, 2.0 + k + seed, 1.5, 0.1) for k, word in enumerate(("good", "bad", "great"))
    ]
    entries = [
        Entry("<b>not bad</b>", 3, 0.25, HOSTILE),
        Entry("so it goes", 2, 0.1, REVIEW),
        Entry("a phrase of many words of somebody else", 2, 0.1, REVIEW),
    ]
    lengths = PhraseLengths(30, 4.1, 1, 9, [5, 6, 7, 3, 2, 1, 2, 1, 3])
    average = WordAttention("(all words)", 100, 0.25, 0.25, 1.0, 1.0, 0.1)
    important = [("good", 4), ("<i>", 2)]
    return RunFacts(name, "em-hrnn", seed, 0.9, lengths, words, average, important, [("a", entries), ("b", [])])


def made_up_analysis() -> Analysis:
    drawn = [ComparedDocument(row, ("a",), 20, ("good", "<i>"), (3, 3 * row)) for row in range(1, 9)]
    same = WordAgreement(8, 0, 1, 0.05)
    return Analysis(
        data="<data>",
        documents=8,
        words=100,
        skipped=1,
        models=[made_up_model("EM-HRNN", 0), made_up_model("MHS-RNN", 1)],
        agreement=same,
        agreement_of_all=same,
        drawn=drawn,
        seed=0,
        making={"command": "emhrnn paper table3", "commit": "c", "machine": "m"},
    )
