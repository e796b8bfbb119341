import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.files import atomic_file, atomic_folder, sha256, write_json, write_text


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_text(path, "grün\r\n")
    assert path.read_bytes() == "grün\r\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"half", "not bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_round_trip_and_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"ä": [1, 2.5]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"ä": [1, 2.5]}
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, float("nan"))
    assert json.loads(path.read_text(encoding="utf-8")) == {"ä": [1, 2.5]}


def test_sha256(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 3_000_001)
    assert sha256(path) == hashlib.sha256(b"x" * 3_000_001).hexdigest()


def test_a_folder_appears_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with atomic_folder(path) as partial:
        (partial / "a").write_text("1")
        assert not path.exists()
    assert (path / "a").read_text() == "1"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with atomic_folder(path) as partial:
        (partial / "a").write_text("old")
    with pytest.raises(RuntimeError), atomic_folder(path, overwrite=True) as partial:
        raise RuntimeError
    assert (path / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_overwriting_must_be_allowed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    with atomic_folder(path) as partial:
        (partial / "a").write_text("1")
    with pytest.raises(DataError, match="exists and is not empty"), atomic_folder(path):
        pass
    with atomic_folder(path, overwrite=True) as partial:
        (partial / "b").write_text("2")
    assert [p.name for p in path.iterdir()] == ["b"]


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(DataError, match="is a file"), atomic_folder(tmp_path / "a"):
        pass


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".a.txt.0123abcd.partial").write_text("half")
    (tmp_path / ".run.0123abcd.partial").mkdir()
    others = [tmp_path / name for name in (".b.txt.0123abcd.partial", ".a.txt.partial", ".a.txt.0123abcd.partial.txt")]
    for other in others:
        other.write_text("of others")
    write_text(tmp_path / "a.txt", "whole")
    with atomic_folder(tmp_path / "run"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "run", *(other.name for other in others)}


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    file, folder = tmp_path / "a.txt", tmp_path / "run"
    with atomic_file(file) as first, atomic_folder(folder) as partial:
        (partial / "one").write_text("1")
        write_text(file, "second")
        with atomic_folder(folder) as other:
            (other / "two").write_text("2")
        first.write(b"first")
        shutil.rmtree(folder)
    assert file.read_text() == "first"
    assert [path.name for path in folder.iterdir()] == ["one"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "run"}


def test_writers_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    def write(number: int) -> None:
        write_text(tmp_path / "a.txt", str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(400)))
    assert int((tmp_path / "a.txt").read_text()) < 400
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
