"""A run as one file: the same predictions, nothing of the training data, and every damage is noticed."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.errors import CheckpointError
from emhrnn.training.pack import MANIFEST, beside, is_packed, located, pack, unpacked
from tests.behaviour.commands import BAD, GOOD, Cli, rows, write_rows


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    return pack(run, tmp_path / "a.emhrnn").path


def test_the_same_predictions_and_explanations(run: Path, packed: Path) -> None:
    one, other = emhrnn.load(run), emhrnn.load(packed)
    np.testing.assert_array_equal(one.predict_proba([GOOD, BAD]), other.predict_proba([GOOD, BAD]))
    assert one.explain(GOOD).to_dict() == other.explain(GOOD).to_dict()


def test_nothing_of_the_data_or_the_machine(run: Path, packed: Path, made: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
        content = b"".join(archive.read(name) for name in names)
    assert names == {MANIFEST, "config.json", "model.safetensors", "vocabulary.txt", "history.jsonl", "metrics.json",
                     "card.md"}  # fmt: skip
    assert str(made).encode() not in content
    assert b"pytest" not in content
    assert str(made).encode() in (run / "config.json").read_bytes()
    description = json.loads((unpacked(packed) / "config.json").read_text())
    assert description["data"]["train"]["source"] == "reviews.csv"
    assert "command" not in description


def test_the_same_run_gives_the_same_bytes(run: Path, packed: Path, tmp_path: Path) -> None:
    again = pack(unpacked(packed), tmp_path / "other" / "a.emhrnn")
    assert again.path.read_bytes() == packed.read_bytes()
    assert again.left_out == ()
    assert {"corpus", "checkpoint"} <= set(pack(run, tmp_path / "b.emhrnn").left_out)


def rewritten(packed: Path, change: dict[str, bytes], extra: dict[str, bytes] | None = None) -> Path:
    """The file with some content changed, the manifest as it was unless it is among them."""
    out = packed.with_name("changed.emhrnn")
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change.get(name, old.read(name)))
        for name, content in (extra or {}).items():
            new.writestr(name, content)
    return out


def manifest(packed: Path) -> dict[str, dict[str, dict[str, object]]]:
    with zipfile.ZipFile(packed) as archive:
        return dict(json.loads(archive.read(MANIFEST)))


def test_damage_is_noticed(packed: Path) -> None:
    with pytest.raises(CheckpointError, match=r"vocabulary.txt is not what"):
        unpacked(rewritten(packed, {"vocabulary.txt": b"soup\n"}))
    with zipfile.ZipFile(packed) as archive:
        words = archive.read("vocabulary.txt")
    with pytest.raises(CheckpointError, match=r"checksum of vocabulary.txt"):
        unpacked(rewritten(packed, {"vocabulary.txt": words.swapcase()}))
    cut = packed.with_name("cut.emhrnn")
    cut.write_bytes(packed.read_bytes()[:-50])
    for wrong in (cut, packed.with_name("text.emhrnn")):
        wrong.touch()
        with pytest.raises(CheckpointError, match="copy or pack it again"):
            emhrnn.load(wrong)


def test_names_outside_a_run_are_refused(packed: Path) -> None:
    told = manifest(packed)
    for name in ("../evil.txt", "/tmp/evil.txt", "encoder/../evil.txt", "evil.py"):
        files = {**told["files"], name: {"bytes": 4, "sha256": "0"}}
        bad = rewritten(packed, {MANIFEST: json.dumps({**told, "files": files}).encode()}, {name: b"evil"})
        with pytest.raises(CheckpointError, match="is not what the manifest says"):
            unpacked(bad)
    assert not (packed.parent / "evil.txt").exists()


def test_a_bomb_is_refused(packed: Path) -> None:
    told, size = manifest(packed), 300 << 20
    files = {**told["files"], "ids.json": {"bytes": size, "sha256": "0"}}
    bomb = packed.with_name("bomb.emhrnn")
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps({**told, "files": {"ids.json": files["ids.json"]}}))
        with archive.open("ids.json", "w") as file:
            for _ in range(300):
                file.write(bytes(1 << 20))
    with pytest.raises(CheckpointError, match="unpacks to"):
        unpacked(bomb)


def test_a_newer_format_names_the_version(packed: Path) -> None:
    newer = json.dumps({**manifest(packed), "format": "emhrnn.pack/2", "emhrnn": "9.1"}).encode()
    with pytest.raises(CheckpointError, match=r"emhrnn.pack/2.*9\.1"):
        unpacked(rewritten(packed, {MANIFEST: newer}))


def test_what_is_a_packed_run(packed: Path, made: Path, tmp_path: Path) -> None:
    renamed = shutil.copy(packed, tmp_path / "model.zip")
    assert is_packed(Path(renamed))
    assert not is_packed(made / "reviews.csv")
    assert not is_packed(made / "run")


def test_what_people_add_is_kept_where_they_look(
    run: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the temporary folder of an unpacked run, and not in the package."""
    assert beside(run, ".jobs") == run.resolve().with_name(f"{run.name}.jobs")
    assert beside(located(packed), ".jobs").parent == packed.resolve().parent
    monkeypatch.chdir(tmp_path)
    assert beside(located("demo"), ".jobs") == Path.cwd() / "demo.jobs"
    assert beside(located("demo"), "").name == "demo"  # the name that the server shows


def test_the_model_of_the_package_is_packed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pack(located("demo")).path == tmp_path / "demo.emhrnn"
    assert emhrnn.load("demo.emhrnn").predict([GOOD]) == emhrnn.load("demo").predict([GOOD])


def test_every_command_takes_the_file(cli: Cli, packed: Path, made: Path, tmp_path: Path) -> None:
    assert cli.ok("evaluate", packed, made / "test.jsonl", "--json").json["documents"] == 8
    assert cli.ok("info", packed, "--json").json["kind"] == "run"
    assert "Model card: a" in cli.ok("info", packed, "--card").out
    assert cli.ok("explain", packed, GOOD, "--json").json["predicted"]
    out = tmp_path / "p.csv"
    assert cli.ok("predict", packed, made / "test.jsonl", "--out", out, "--json", "--quiet").json["rows"] == 8
    noisy = [(text, "bad" if i % 7 == 0 else label) for i, (text, label) in enumerate(rows(40))]
    data, better = write_rows(tmp_path / "new.csv", noisy), tmp_path / "better.emhrnn"
    assert "give --out" in cli.error("calibrate", packed, data, "--quiet")
    cli.ok("calibrate", packed, data, "--quiet", "--out", better)
    assert emhrnn.load(better).run.temperature != emhrnn.load(packed).run.temperature


def test_the_command(cli: Cli, own_run: Path, tmp_path: Path) -> None:
    told = cli.ok("pack", own_run).out
    assert own_run.with_name("own-run.emhrnn").is_file()
    assert "left out: checkpoint, corpus" in told
    assert "vocabulary" in told
    assert "lies in the run" in cli.error("pack", own_run, "--out", own_run / "a.emhrnn")
    (own_run / "model.safetensors").unlink()
    assert "no weights" in cli.error("pack", own_run)
