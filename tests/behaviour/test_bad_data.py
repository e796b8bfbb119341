"""Data that cannot be used, or only in part: one line that says what, where and what to do, or as docs/data.md says."""

import gzip
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import emhrnn
from emhrnn.errors import DataError
from tests.behaviour.commands import BAD, GOOD, TINY, Cli, rows, tiny, write_reviews, write_rows

PRINTABLE = 400  # characters of an error that a person reads to its end


def test_missing_file(cli: Cli, run: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.csv"
    assert "nothing.csv does not exist; check the name" in cli.train_error(nothing)
    assert "does not exist" in cli.error("evaluate", run, nothing)
    assert "does not exist" in cli.error("predict", run, nothing, "--out", tmp_path / "p.csv")
    assert "does not exist" in cli.error("paper", "prepare", nothing, "--out", tmp_path / "corpus")
    assert "does not exist" in cli.error("info", nothing)
    assert "does not exist" in cli.error("explain", run, "--file", nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff", "\u00a0\u2003\n", "\x0c\x1c\0"])
@pytest.mark.parametrize("name", ["empty.csv", "empty.dat"])
def test_empty_file(cli: Cli, run: Path, tmp_path: Path, name: str, content: str) -> None:
    data = tmp_path / name
    data.write_text(content, encoding="utf-8")
    assert f"{name} is empty; give a file with documents" in cli.train_error(data)
    assert "is empty" in cli.error("predict", run, data, "--out", tmp_path / "p.csv")
    assert "is empty" in cli.error("info", data)
    assert not (tmp_path / "p.csv").exists()


def test_header_without_rows(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.csv", [])
    assert "a.csv has no usable document (0 rows read)" in cli.train_error(data)
    assert "a.csv has no rows" in cli.error("predict", run, data, "--out", tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("words,mark\nx,1\n", [], "no text column and no label column found"),
        ("words,mark\nx,1\n", [], "--text-column and --label-column"),
        ("words,mark\nx,1\n", ["--text-column", "words"], "no label column found: "),
        ("words,mark\nx,1\n", ["--text-column", "words"], "has the columns 'words', 'mark'"),
        ("words,mark\nx,1\n", ["--text-column", "words", "--label-column", "Mark"], "no label column 'Mark'"),
        ("text,stars,sentiment\nx,1,2\n", [], "label column could be 'stars' or 'sentiment'"),
        ("text,label,text\nx,1,y\n", [], "the text column 'text' is there 2 times"),
        ("the room was good,good\n" * 2, [], "or add a header line such as text,label: it seems to be missing"),
        ("text,label\na,1\nb,c,1\n", [], "a.csv, row 2 has 3 fields"),
        ('{"text": "a", "label": 1}\n{"text": \n', ["--format", "jsonl"], "a.csv, row 2 is not valid JSON"),
        (
            "text,label\n" + "soup,good\n" * 20,
            [],
            "all 20 documents have the class 'good'; training needs at least two",
        ),
        ("text,label\nsoup,good\nfish,bad\n", [], "2 documents are too few"),
        (
            "text,label\n" + "".join(f"soup {i},label {i}\n" for i in range(20)),
            [],
            "each of the 20 documents has a label of its own; is it the right label column?",
        ),
    ],
)
def test_what_training_refuses(cli: Cli, tmp_path: Path, content: str, options: list[str], told: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    message = cli.train_error(tmp_path / "a.csv", *options)
    assert told in message
    assert "header line" not in message or "header line" in told


def test_label_seen_only_in_test(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "test.csv", [*rows(3), (GOOD, "superb")])
    message = cli.error("evaluate", run, data)
    assert "test.csv, row 4 has the label 'superb'" in message
    assert "'bad', 'good'" in message
    assert "row 4 has the label 'superb'" in cli.error(
        "train", made / "reviews.csv", "--valid", data, "--out", tmp_path / "x", *TINY
    )
    assert not (tmp_path / "x").exists()


def test_empty_texts_are_skipped_and_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.jsonl", [*rows(20), ("", "good"), (" \t\n", "bad"), (GOOD, "")])
    report = cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus").out
    assert "2 rows: empty text" in report
    assert "a.jsonl, row 21)" in report
    assert "1 rows: no label" in report
    result = cli.ok("evaluate", run, data, "--json")
    assert result.json["documents"] == 20
    assert result.json["skipped"] == {"no label": 1, "empty text": 2}
    assert "2 rows of" in result.err
    trained = cli.ok("train", data, "--out", tmp_path / "run", "--json", "--quiet", *TINY)
    assert trained.json["skipped"] == {"no label": 1, "empty text": 2}
    assert "1 row of" in trained.err
    message = cli.error("paper", "prepare", data, "--out", tmp_path / "strict", "--strict")
    assert "a.jsonl, row 23 has no label" in message
    only_empty = write_rows(tmp_path / "b.jsonl", [("", "good"), (" ", "bad")])
    assert "no usable document (2 rows read, 2 with empty text)" in cli.train_error(only_empty)


def test_a_document_of_one_word(cli: Cli, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.jsonl", [("good" if i % 2 else "bad", str(i % 2)) for i in range(20)])
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", *TINY)
    assert "good" in cli.ok("explain", tmp_path / "run", "good").out


def test_a_document_of_100_000_words(cli: Cli, run: Path, tmp_path: Path) -> None:
    text = (GOOD + " ") * (100_000 // 15)
    data = write_rows(tmp_path / "long.jsonl", [(text, "good"), *rows(3)])
    assert cli.ok("predict", run, data, "--out", tmp_path / "p.csv", "--json").json["words"] > 100_000  # type: ignore[operator]
    explanation = emhrnn.load(run).explain(text)  # its 100,000 words as JSON take too long under the tests' type checks
    assert len(explanation.word_shares) > 100_000
    (tmp_path / "long.txt").write_text(text[:60_000])
    explained = cli.ok("explain", run, "--file", tmp_path / "long.txt", "--json").json
    assert len(explained["sentences"]) > 1_000  # type: ignore[arg-type]


def test_training_on_very_long_documents(cli: Cli, tmp_path: Path) -> None:
    long = [((GOOD if i else BAD) * 700, str(i)) for i in range(2)]  # 10,000 words each
    endless = [(("good " if i else "bad ") * 5000, str(i)) for i in range(2)]  # one sentence of 5,000 words
    data = write_rows(
        tmp_path / "a.jsonl", [*[(text, str(i % 2)) for i, (text, _) in enumerate(rows(20))], *long, *endless]
    )
    report = cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--json").json
    assert report["longest_sentence"] == 5000
    cli.ok("train", tmp_path / "corpus", "--out", tmp_path / "run", "--quiet", *TINY)
    capped = cli.ok("paper", "prepare", data, "--out", tmp_path / "capped", "--max-sentence-words", "50").out
    assert "2 documents by the limits" in capped  # never in silence


def test_broken_utf8_and_nul_bytes(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.jsonl"
    write_reviews(data, 20)
    with data.open("ab") as file:
        file.write(
            b'{"text": "caf\xe9 was good, \xc3\xa9", "label": "good"}\n{"text": "a\\u0000b bad", "label": "bad"}\n'
        )
    report = cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus").out
    assert "1 documents: broken UTF-8 replaced" in report
    assert "1 documents: NUL bytes replaced" in report
    assert "row 21 has broken UTF-8" in cli.error("paper", "prepare", data, "--out", tmp_path / "strict", "--strict")
    assert cli.ok("predict", run, data, "--out", tmp_path / "p.jsonl", "--json").json["rows"] == 22
    explained = cli.ok("explain", run, "-", "--json", stdin=b"caf\xe9 was\0good \xc3\xa9").json
    assert explained["text"] == "caf\ufffd was good é"


@pytest.mark.parametrize(
    "text", ["😀👍🏽 🏳️‍🌈!", "המרק היה טוב. لم يعجبني الحساء!", "\u202eevil\u202c \u200bzero", "１２３ ﬁne"]
)
def test_emoji_and_right_to_left_text(cli: Cli, run: Path, tmp_path: Path, text: str) -> None:
    data = write_rows(tmp_path / "a.jsonl", [*rows(20), (text, "good")])
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", *TINY)
    explained = cli.ok("explain", tmp_path / "run", text, "--json").json
    assert explained["text"] == text
    assert cli.ok("explain", tmp_path / "run", text).err == ""


def test_truncated_gzip(cli: Cli, run: Path, tmp_path: Path) -> None:
    whole = write_reviews(tmp_path / "a.jsonl", 300).read_bytes()
    data = tmp_path / "a.jsonl.gz"
    data.write_bytes(gzip.compress(whole)[:-20])
    assert "a.jsonl.gz is cut off" in cli.train_error(data)
    assert "copy or download it again" in cli.error("predict", run, data, "--out", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()
    assert "cut off" in cli.error("evaluate", run, data)


def test_a_file_without_header_is_told_shortly(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text((GOOD.replace(",", "") * 20 + ",good\n") * 3)
    assert len(cli.train_error(data).replace(str(tmp_path), "")) < PRINTABLE


def test_folders_that_are_no_data(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write_reviews(tmp_path / "files" / "a.csv", 4)
    assert "has no folders; give a file, or a folder with one folder" in cli.train_error(tmp_path / "files")
    (tmp_path / "nested" / "empty").mkdir(parents=True)
    assert "holds no .txt file" in cli.train_error(tmp_path / "nested")
    assert "is a run folder, not data" in cli.error("train", run, "--out", tmp_path / "x")
    assert "is a run folder, not data" in cli.error("evaluate", run, run)
    assert "is a run folder, not data" in cli.error("predict", run, run, "--out", tmp_path / "p.csv")
    assert "holds runs or prepared corpora, such as" in cli.error("train", made, "--out", tmp_path / "x")


def test_data_where_a_run_is_wanted(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    data = made / "test.jsonl"
    for command in (
        ["evaluate", data, run],
        ["predict", data, run, "--out", tmp_path / "p.csv"],
        ["explain", data, "x"],
    ):
        assert "test.jsonl is a file, not a run folder; give the folder of a run first" in cli.error(*command)
    corpus = run / "corpus" / "train"
    assert "is a prepared corpus, not a run folder" in cli.error("evaluate", corpus, data)
    assert "not a run folder, it has no config.json" in cli.error("evaluate", tmp_path, data)
    assert "no such run folder; `emhrnn train DATA --out" in cli.error("evaluate", tmp_path / "none", data)


def test_what_a_prepared_corpus_cannot_change_any_more(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    cli.ok("paper", "prepare", made / "test.jsonl", "--out", corpus, "--no-lowercase")
    assert "in which the split 'dev' cannot be chosen" in cli.error(
        "train", corpus, "--out", tmp_path / "x", "--split", "dev"
    )
    assert "the text 'body' cannot be chosen" in cli.error("evaluate", run, corpus, "--text-column", "body")
    message = cli.error("evaluate", run, corpus)
    assert "lowercase False" in message
    assert "--like RUN" in message
    asked = ["--set", "data.max_sentences=3"]
    assert "was prepared with" in cli.error("train", corpus, "--out", tmp_path / "x", *TINY, *asked)
    assert "is a prepared corpus already" in cli.error("paper", "prepare", corpus, "--out", tmp_path / "again")
    assert not (tmp_path / "x").exists()


def test_a_corpus_of_other_classes(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.jsonl", [(text, "1" if label == "good" else "0") for text, label in rows(8)])
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus")
    message = cli.error("evaluate", run, tmp_path / "corpus")
    assert "was prepared with the classes '0', '1', the model has 'bad', 'good'" in message


def write_lists(path: Path, count: int) -> Path:
    """The rows as documents with a list of labels each."""
    path.write_text("".join(json.dumps({"text": text, "labels": [label]}) + "\n" for text, label in rows(count)))
    return path


def test_one_label_and_lists_of_labels_are_not_mixed(cli: Cli, made: Path, own_run: Path, tmp_path: Path) -> None:
    one, several = made / "test.jsonl", write_lists(tmp_path / "lists.jsonl", 24)
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    cli.ok("paper", "prepare", several, "--out", tmp_path / "corpus", "--like", own_run, "--quiet")
    for command in (["evaluate", own_run, several], ["evaluate", own_run, tmp_path / "corpus"]):
        message = cli.error(*command, "--quiet")
        assert "has a list of labels per document, the model is trained on data with one label per document" in message
    assert "lists.jsonl has a list of labels" in cli.error("calibrate", own_run, several, "--quiet")
    assert "lists.jsonl has a list" in cli.train_error(made / "reviews.csv", "--valid", several)
    assert {path: path.read_bytes() for path in before} == before
    cli.ok("train", several, "--out", tmp_path / "many", "--quiet", *TINY)
    message = cli.error("evaluate", tmp_path / "many", one, "--quiet")
    assert "test.jsonl has one label per document, the model is trained on data with a list of labels" in message
    assert "give labels of that kind" in cli.train_error(several, "--valid", one)
    unlabelled = tmp_path / "texts.jsonl"
    unlabelled.write_text(json.dumps({"text": GOOD}) + "\n")
    for run in (own_run, tmp_path / "many"):
        cli.ok("predict", run, unlabelled, "--out", tmp_path / "p.csv", "--quiet")


def test_validation_rows_are_never_trained_on(cli: Cli, made: Path, tmp_path: Path) -> None:
    data, out = made / "reviews.csv", tmp_path / "x"
    assert "would be trained on, too" in cli.error("train", data, "--out", out, "--valid-split", "dev")
    assert "given twice" in cli.error("train", data, "--out", out, "--valid-split", "dev", "--valid", data)


def test_json_holds_any_text(cli: Cli, run: Path) -> None:
    text = 'quotes " and \\ and </script> and \u2028 here'
    assert cli.ok("explain", run, text, "--json").json["text"] == text
    assert json.loads(cli.ok("explain", run, "nan inf", "--json").out)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_explain_detects_the_encoding_too(cli: Cli, run: Path, tmp_path: Path, encoding: str) -> None:
    text = "The café was good."
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert cli.ok("explain", run, "--file", tmp_path / "a.txt", "--json").json["text"] == text
    assert cli.ok("explain", run, "-", "--json", stdin=text.encode(encoding)).json["text"] == text


def test_info_looks_at_the_columns_that_are_named(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("letter,kind\nThe soup was cold.,complaint\n")
    assert "of them with --text-column" in cli.error("info", data)
    guessed = cli.ok("info", data, "--text-column", "letter").out
    assert "text = letter" in guessed
    assert "give one of them with --label-column" in guessed
    assert "complaint" in cli.ok("info", data, "--text-column", "letter", "--label-column", "kind").out
    wrong = cli.ok("info", data, "--text-column", "letter", "--label-column", "sort").out
    assert "no label column 'sort'" in wrong
    assert "no data with columns to choose" in cli.error("info", run, "--text-column", "letter")


def test_a_column_of_quantities(cli: Cli, tmp_path: Path) -> None:
    def labelled(names: Iterable[str]) -> Path:
        return write_rows(tmp_path / "a.csv", [(f"soup {name} {k}", name) for k in range(3) for name in names])

    quantities = [f"{1 + k / 60:.3f}" for k in range(60)]
    told = cli.train_error(labelled(quantities))
    assert "the labels are 60 different numbers such as 1.017 and 1.983, which is a quantity, not classes" in told
    assert "round it to a few grades, check the label column, or write a letter before them if they are names" in told
    for k, names in enumerate(([f"v{name}" for name in quantities], [f"{k / 2}" for k in range(1, 21)])):
        cli.ok("train", labelled(names), "--out", tmp_path / f"run{k}", "--quiet", *tiny("tfidf-lr"))


def test_a_run_among_the_classes(cli: Cli, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / "docs" / name).mkdir(parents=True)
        for i in range(9):
            (tmp_path / "docs" / name / f"{i}.txt").write_text(f"A {name} soup {i}.")
    told = cli.error("train", tmp_path / "docs", "--out", tmp_path / "docs" / "run", *TINY)
    assert f"lies inside the data, whose folders are classes; give a folder outside {tmp_path / 'docs'}" in told
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == ["bad", "good"]
    cli.ok("train", tmp_path / "docs", "--out", tmp_path / "run", "--quiet", *TINY)


def test_names_for_a_model_that_reads_none(run: Path) -> None:
    model = emhrnn.load(run)
    for ask in (model.predict, model.explain):
        with pytest.raises(DataError, match="does not read who wrote a text or about what; leave users and products"):
            ask(["Good."], users=["ann"], products=[None])
    assert model.predict(["Good."], users=[None], products=[None]) == model.predict(["Good."])


def write_latin1(path: Path, count: int) -> Path:
    lines = "".join(f"{text} Café.,{label}\n" for text, label in ((t.replace(",", ""), one) for t, one in rows(count)))
    path.write_bytes(f"text,label\n{lines}".encode("latin-1"))
    return path


def test_what_was_repaired_is_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_latin1(tmp_path / "a.csv", 20)
    told = f"emhrnn: 20 documents of {data} had bytes that are not UTF-8 (read as U+FFFD); give its --encoding\n"
    for call in (
        ("evaluate", run),
        ("train", "--out", tmp_path / "run", *TINY),
    ):
        result = cli.ok(*call, data, "--json", "--quiet", "--encoding", "utf-8")
        assert told in result.err
        assert result.json["repaired"] == {"broken UTF-8": 20}
    predict = ("predict", run, data, "--out", tmp_path / "p.csv", "--workers", "1")
    predicted = cli.ok(*predict, "--encoding", "utf-8").out
    assert "\n20 rows were repaired (bytes that are not UTF-8, or NUL); " in predicted
    assert "could not be scored" not in predicted
    one = tmp_path / "one.jsonl"
    one.write_bytes(b'{"text": "caf\xe9 was good, \xc3\xa9"}\n{"text": ""}\n')
    predicted = cli.ok("predict", run, one, "--out", tmp_path / "p.csv", "--workers", "1").out
    assert "1 row could not be scored, 1 row was repaired (bytes" in predicted
    facts = cli.ok("predict", run, one, "--out", tmp_path / "p.csv", "--workers", "1", "--json").json
    assert (facts["unscored"], facts["repaired"]) == (1, 1)


def test_validation_rows_that_are_skipped_are_told(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "a.csv", 20)
    valid = write_rows(tmp_path / "v.csv", [*rows(4), ("", "good")])
    result = cli.ok("train", data, "--valid", valid, "--out", tmp_path / "run", "--json", "--quiet", *TINY)
    assert f"1 row of {valid} was skipped: empty text" in result.err
    assert (result.json["skipped"], result.json["valid_skipped"]) == ({}, {"empty text": 1})
    assert result.json["best_epoch"] == 1  # counted as for people
    held_out = write_rows(tmp_path / "b.csv", [*rows(20), ("", "good")])
    result = cli.ok("train", held_out, "--out", tmp_path / "other", "--json", "--quiet", *TINY)
    assert (result.json["skipped"], result.json["valid_skipped"]) == ({"empty text": 1}, {})


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems have no such names")
def test_a_file_name_that_is_not_utf8(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_latin1(tmp_path / "caf\udce9.csv", 20)
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", *TINY)
    assert "caf\\udce9.csv" in (tmp_path / "run" / "config.json").read_text()
    cli.ok("info", tmp_path / "run", "--card")
    cli.ok("evaluate", run, data, "--json", "--quiet")
    cli.ok("predict", run, data, "--out", tmp_path / "p\udce9.csv", "--workers", "1", "--encoding", "utf-8")
    line = json.loads((tmp_path / "p\udce9.csv.errors.jsonl").read_text().splitlines()[0])
    assert line["where"] == f"{data}, row 1"
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--quiet")
    odd = tmp_path / "corpus\udce9"
    assert "corpus\\udce9' is not UTF-8; rename it" in cli.error("paper", "prepare", data, "--out", odd, "--quiet")
    assert not odd.exists()


def test_data_has_no_model_card(cli: Cli, made: Path, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "a.csv", 4)
    assert "a.csv is data, and only a run has a model card" in cli.error("info", data, "--card")


@pytest.mark.parametrize("given", ["--format", "guessed"])
def test_a_pipe_can_be_read_only_once(cli: Cli, run: Path, tmp_path: Path, given: str) -> None:
    """What has been looked at would be missing when it is read, and a pipe without a writer waits forever."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    options = ["--format", "csv"] if given == "--format" else []
    told = "pipe.csv is a pipe, which can be read only once; write it to a file first"
    assert told in cli.train_error(pipe, *options)
    assert told in cli.error("evaluate", run, pipe, *options)
    assert told in cli.error("predict", run, pipe, "--out", tmp_path / "p.csv", *options)
    assert told in cli.error("paper", "prepare", pipe, "--out", tmp_path / "corpus", *options)
    assert told in cli.error("compare", pipe, "--models", "tfidf-lr", "--out", tmp_path / "c", *options)
    assert told in cli.error("info", pipe)
    assert "the standard input can be read only once" in cli.error("predict", run, "-", "--out", tmp_path / "p.csv")


def test_columns_that_are_there_twice_or_taken_twice(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("id,text,id\n1,good,a1\n2,bad,a2\n")
    message = cli.error("predict", run, data, "--out", tmp_path / "p.csv")
    assert "the id column 'id' is there 2 times" in message
    reviews = write_reviews(tmp_path / "reviews.csv", 12)
    message = cli.train_error(reviews, "--text-column", "label", "--label-column", "label")
    assert "'label' is to be both the text and the label" in message
    assert "'label' is to be both the label and the weight" in cli.train_error(reviews, "--weight-column", "label")
