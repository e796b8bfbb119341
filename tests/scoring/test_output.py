"""Scoring that is stopped anywhere goes on, and the output is that of an uninterrupted run, byte for byte."""

import json
import multiprocessing
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from emhrnn import scoring
from emhrnn.errors import DataError
from emhrnn.scoring import ScoringResult, score
from emhrnn.scoring.chunks import Data
from emhrnn.scoring.output import Unfinished
from emhrnn.scoring.scorer import Scored, score_chunks

pytestmark = pytest.mark.usefixtures("small_chunks")


class StoppedError(Exception):
    """Stands for any end at a bad moment."""


def scored(run: Path, data: Path, out: Path, *, explain: bool = False, restart: bool = False) -> ScoringResult:
    return score(run, Data(paths=(data,)), out, explain=explain, restart=restart, progress=False)


def stop_after(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def some(*arguments: object) -> Iterator[Scored]:
        for number, done in enumerate(score_chunks(*arguments)):  # type: ignore[arg-type]
            if number == chunks:
                raise StoppedError
            yield done

    monkeypatch.setattr(scoring, "score_chunks", some)


@pytest.fixture
def begun(small_chunks: None, run: Path, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output of which 3 chunks of 5 rows are done."""
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(StoppedError):
            scored(run, reviews, tmp_path / "p.csv")
    return tmp_path / "p.csv.unfinished"


@pytest.fixture
def whole(small_chunks: None, run: Path, reviews: Path, tmp_path: Path) -> bytes:
    scored(run, reviews, tmp_path / "whole.csv")
    return (tmp_path / "whole.csv").read_bytes()


def test_it_goes_on(run: Path, reviews: Path, tmp_path: Path, begun: Path, whole: bytes) -> None:
    result = scored(run, reviews, tmp_path / "p.csv")
    assert (result.rows, result.before) == (43, 15)
    assert (tmp_path / "p.csv").read_bytes() == whole
    assert not begun.exists()


def test_it_goes_on_beside_its_data(
    run: Path, reviews: Path, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    shutil.copy(reviews, folder / "reviews.jsonl")
    for data in (folder, folder / "**" / "*"):
        with monkeypatch.context() as patch:
            stop_after(3, patch)
            with pytest.raises(StoppedError):
                scored(run, data, folder / "p.csv")
        result = scored(run, data, folder / "p.csv")
        assert (result.rows, result.before) == (43, 15)
        assert (folder / "p.csv").read_bytes() == whole


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux lists open files")
def test_files_are_closed_before_they_are_renamed(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows renames no others."""
    rename, renamed = Path.replace, []

    def replace(path: Path, target: Path) -> Path:
        renamed.append(path.name)
        if path.name in ("rows", "errors"):
            assert path not in [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
        return rename(path, target)

    data = tmp_path / "new.jsonl"
    data.write_text('{"text": "Good soup."}\n{"no": "text"}\n')
    monkeypatch.setattr(Path, "replace", replace)
    scored(run, data, tmp_path / "p.csv")
    assert {"rows", "errors"} <= set(renamed)


@pytest.mark.parametrize("name", ["rows", "errors", "journal.jsonl"])
def test_what_a_kill_left_half_written_is_cut_off(
    name: str, run: Path, reviews: Path, tmp_path: Path, begun: Path, whole: bytes
) -> None:
    with (begun / name).open("ab") as file:
        file.write(b'{"half')
    assert scored(run, reviews, tmp_path / "p.csv").before == 15
    assert (tmp_path / "p.csv").read_bytes() == whole
    assert not (tmp_path / "p.csv.errors.jsonl").exists()


def test_a_damaged_part_is_scored_anew(run: Path, reviews: Path, tmp_path: Path, begun: Path, whole: bytes) -> None:
    content = bytearray((begun / "rows").read_bytes())
    first = json.loads((begun / "journal.jsonl").read_bytes().splitlines()[0])["rows"][0]
    content[first + 3] ^= 1  # in the second chunk
    (begun / "rows").write_bytes(content)
    assert scored(run, reviews, tmp_path / "p.csv").before == 5
    assert (tmp_path / "p.csv").read_bytes() == whole


@pytest.mark.parametrize("name", ["settings.json", "journal.jsonl"])
def test_no_damage_of_what_is_known_changes_the_output(
    name: str, run: Path, reviews: Path, tmp_path: Path, begun: Path, whole: bytes
) -> None:
    """Flips, cuts and depth: all rows as they would be, and counted, or one line that says what to do."""
    kept, rng = shutil.copytree(begun, tmp_path / "kept"), random.Random(name)
    original, refused = (begun / name).read_bytes(), []
    for trial in range(17):
        shutil.rmtree(begun, ignore_errors=True)
        shutil.copytree(kept, begun)
        content, place = bytearray(original), rng.randrange(len(original))
        content[place] ^= 1 << rng.randrange(8)
        (begun / name).write_bytes(content if trial % 4 else original[:place])
        if trial == 16:  # deeper than JSON is read
            (begun / name).write_bytes(b"[" * 5000 + b"\n")
        try:
            result = scored(run, reviews, tmp_path / "p.csv")
        except DataError as error:
            refused.append(str(error))
            result = scored(run, reviews, tmp_path / "p.csv", restart=True)
        assert (tmp_path / "p.csv").read_bytes() == whole
        assert (result.rows, result.unscored, result.repaired) == (43, 0, 0)
    assert all("--restart" in message for message in refused)
    assert bool(refused) == (name == "settings.json")


@pytest.mark.parametrize("name", ["rows", "journal.jsonl"])
def test_a_part_that_is_missing_is_scored_anew(
    name: str, run: Path, reviews: Path, tmp_path: Path, begun: Path, whole: bytes
) -> None:
    (begun / name).unlink()
    assert scored(run, reviews, tmp_path / "p.csv").before == 0
    assert (tmp_path / "p.csv").read_bytes() == whole


def test_parquet_and_errors_go_on_too(
    run: Path, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = reviews.read_text().splitlines()
    lines[2], lines[33] = '{"text": ""}', "no JSON"
    reviews.write_text("\n".join(lines) + "\n")
    scored(run, reviews, tmp_path / "whole.parquet")
    for chunks in (1, 4):
        with monkeypatch.context() as patch:
            stop_after(chunks, patch)
            with pytest.raises(StoppedError):
                scored(run, reviews, tmp_path / "p.parquet")
    assert scored(run, reviews, tmp_path / "p.parquet").before == 25
    for name in ("parquet", "parquet.errors.jsonl"):
        assert (tmp_path / f"p.{name}").read_bytes() == (tmp_path / f"whole.{name}").read_bytes()


@pytest.mark.usefixtures("begun")
def test_other_work_is_refused(run: Path, own_run: Path, reviews: Path, tmp_path: Path, whole: bytes) -> None:
    out, lines = tmp_path / "p.csv", reviews.read_text().splitlines(keepends=True)
    with pytest.raises(DataError, match=r"explain was 'False' and is 'True'; give --restart"):
        scored(run, reviews, out, explain=True)
    reviews.write_text("".join(lines[1:]))
    with pytest.raises(DataError, match=r"holds the first rows of another scoring: data was"):
        scored(run, reviews, out)
    reviews.write_text("".join([lines[0].replace("soup", "sopu"), *lines[1:]]))  # of the same size
    with pytest.raises(DataError, match=r"has changed since its first rows were scored; give --restart"):
        scored(run, reviews, out)
    reviews.write_text("".join(lines))
    with (own_run / "config.json").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="run was"):
        scored(own_run, reviews, out)
    assert scored(run, reviews, out, restart=True).before == 0
    assert out.read_bytes() == whole


def _hold(out: Path, taken: "multiprocessing.synchronize.Event", done: "multiprocessing.synchronize.Event") -> None:
    with Unfinished(out).opened({}, restart=False):
        taken.set()
        done.wait(30)


def test_two_at_once(run: Path, reviews: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    taken, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "p.csv", taken, done))
    other.start()
    try:
        assert taken.wait(60)
        with pytest.raises(DataError, match=r"another process is writing .*; wait for it"):
            scored(run, reviews, tmp_path / "p.csv")
    finally:
        done.set()
        other.join()
    shutil.rmtree(tmp_path / "p.csv.unfinished", ignore_errors=True)


def test_a_failure_before_the_first_part_leaves_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n")
    with pytest.raises(DataError, match="has no rows"):
        scored(run, tmp_path / "a.csv", tmp_path / "p.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
