"""Table 3 and the two runs behind it."""

from pathlib import Path

from emhrnn.api import train
from emhrnn.corpus.record import clean_text
from emhrnn.evaluation.scores import PhraseLengths
from emhrnn.explain.lexicon import Entry
from emhrnn.paper.analysis import Analysis, ComparedDocument, RunFacts, WordAgreement, WordAttention
from emhrnn.paper.analysis.table3 import Table3, describe_training, render_table3
from emhrnn.training.config import make_config
from tests.behaviour.commands import TINY, write_reviews
from tests.explain.documents import HOSTILE as ANY_HOSTILE
from tests.explain.documents import REVIEW

TRAINED = {
    "model": "em-hrnn", "data": "d.jsonl", "documents": 5, "epochs": 1, "seed": 0, "vectors": None, "estep": "local",
    "settings": {"training.epochs": 1},
}  # fmt: skip


def test_the_papers_numbers_stand_beside_ours() -> None:
    text = render_table3(Table3(made_up_analysis(), [TRAINED, {**TRAINED, "estep": None}]))
    assert "| EM-HRNN | 4.10 | 1 | 9 | 4.31 | 1 | 11 |" in text
    assert "| MHS-RNN | 4.10 | 1 | 9 | 4.72 | 1 | 17 |" in text
    assert "| good | 0.50 | 0.69 | 0.50 | 0.62 |" in text
    assert "EM-HRNN was trained with training.epochs=1 set" in text
    assert "176 of 200" in text
    assert "not been judged by people" in text


def test_no_text_of_others_is_passed_on() -> None:
    table = Table3(made_up_analysis(), [TRAINED] * 2)
    told = str(table.to_dict()) + render_table3(table)
    assert "so it goes" in told
    assert "somebody else" not in told
    assert REVIEW.split(".")[0] not in told
    assert "<b>" not in render_table3(table)


def test_what_a_run_was_trained_on(tmp_path: Path) -> None:
    settings = [assignment for assignment in TINY if assignment != "--set"]
    config = make_config(assignments=["model.name=mhs-rnn-att"], shared=settings)
    train(write_reviews(tmp_path / "reviews.csv", 12), tmp_path / "run", config=config, progress=False)
    told = describe_training(tmp_path / "run")
    assert (told["data"], told["model"], told["epochs"]) == ("reviews.csv", "mhs-rnn-att", 1)
    assert told["settings"]["model.word_size"] == 3
    assert "training.seed" not in told["settings"]


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
