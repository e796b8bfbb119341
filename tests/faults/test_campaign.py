"""Some faults of every run of the tests; `make faults` tries a thousand. And the harness itself: it must see what is
wrong, or it proves nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import COMMANDS, Campaign, contents, draw, merged
from tests.faults.power_loss import Change, lose_unsynced
from tests.faults.processes import CLASSES, KILLED, Nursery, compiler
from tests.faults.report import to_markdown

FAULTS = 20
pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler for the preload library")


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    with Nursery() as nursery:
        yield Campaign(nursery)


def test_faults_lose_nothing_and_leave_nothing(campaign: Campaign) -> None:
    commands = [name for name in COMMANDS if name not in ("tune", "train-fitted", "predict-jsonl", "audit")]
    wrong = [
        outcome for fault in draw(campaign, commands, FAULTS, seed=5) if (outcome := campaign.disturb(*fault)).wrong
    ]
    assert not wrong


def test_what_is_wrong_is_seen(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that writes without care: an append, killed before it ends, cannot be repeated to the same bytes."""
    moments = campaign.moments("explain", "kill")
    killed = campaign.disturb("explain", "kill", moments)
    assert (killed.first, killed.again, killed.wrong) == (KILLED, 0, ())
    expected = campaign._expected["explain"]
    monkeypatch.setitem(campaign._expected, "explain", {**expected, "why.html": b"", ".hidden": b""})
    assert set(campaign.disturb("explain", "kill", moments).wrong) == {"other bytes"}
    monkeypatch.setitem(campaign._expected, "explain", {k: v for k, v in expected.items() if k != "why.html"})
    assert set(campaign.disturb("explain", "short write", 1).wrong) == {"files left over"}


def test_find_pack_that_cannot_read_its_last_file(campaign: Campaign) -> None:
    """The error named no file."""
    outcome = campaign.disturb("pack", "I/O error", campaign.moments("pack", "I/O error"))
    assert (outcome.first, outcome.wrong) == (2, ())


@pytest.mark.parametrize("fault", [name for name, kind in CLASSES.items() if not kind.ends and kind.error])
def test_every_error_reaches_the_command(campaign: Campaign, fault: str) -> None:
    codes = {
        campaign.disturb("explain", fault, moment).first
        for moment in range(1, campaign.moments("explain", fault) + 1)[-2:]
    }
    assert codes == ({0} if fault == "EINTR" else {2})


def test_power_loss(tmp_path: Path) -> None:
    """Bytes after the last sync are gone; with `names`, so is what became of names since their folder was synced."""
    synced, renamed, backups = tmp_path / "synced", tmp_path / "renamed", tmp_path / "backups"
    backups.mkdir()
    (backups / "1").write_bytes(b"old")
    for path, content in ((synced, b"12345"), (renamed, b"new")):
        path.write_bytes(content)
    changes = [
        Change("create", str(synced), "", 0),
        Change("write", str(synced), "", 3),
        Change("sync", str(synced), "", 0),
        Change("sync", str(tmp_path), "", 0),
        Change("write", str(synced), "", 5),
        Change("create", str(tmp_path / "partial"), "", 0),
        Change("write", str(tmp_path / "partial"), "", 3),
        Change("rename", str(tmp_path / "partial"), str(renamed), 1),
    ]
    lose_unsynced(changes, backups, names=False)
    assert (synced.read_bytes(), renamed.read_bytes()) == (b"123", b"")  # a rename before the sync
    lose_unsynced(changes, backups, names=True)
    assert (synced.read_bytes(), renamed.read_bytes()) == (b"123", b"old")
    assert not (tmp_path / "partial").exists()


def test_contents_tell_other_bytes_but_no_times(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"seconds": 1.5, "valid": 0.5}')
    (tmp_path / "a.bin").write_bytes(b"1")
    before = contents(tmp_path)
    (tmp_path / "metrics.json").write_text('{"seconds": 2.5, "valid": 0.5}')
    assert contents(tmp_path) == before
    (tmp_path / "metrics.json").write_text('{"seconds": 2.5, "valid": 0.6}')
    assert contents(tmp_path) != before


def test_counts_of_two_campaigns_are_added() -> None:
    def row(tried: int, **wrong: int) -> dict[str, object]:
        return {"command": "train", "fault": "kill", "tried": tried, "wrong": wrong}

    one, two = ({"command": name, "rows": [row(*counts)]} for name, counts in (("a", [3]), ("b", [4])))
    two["rows"].append({**row(1, hung=1), "fault": "EINTR"})
    assert [line["tried"] for line in merged(one, two, add=False)["rows"]] == [4, 1]  # of the same command: again
    both = merged(one, two, add=True)
    assert [(line["fault"], line["tried"], line["wrong"]) for line in both["rows"]] == [
        ("kill", 7, {}),
        ("EINTR", 1, {"hung": 1}),
    ]
    text = to_markdown({"faults": {**both, "date": "2026-11-18"}})
    assert "8 faults" in text
    assert "1 hung" in text
    assert "| train | 7 | 1 (1 wrong) |" in text
