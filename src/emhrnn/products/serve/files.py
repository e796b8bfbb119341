"""Files of the data folder, and no others: whatever a name looks like, the file that it leads to lies inside."""

from pathlib import Path

from emhrnn.products.serve.limits import RefusedError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".ss", ".txt")
PACKED = (".gz", ".xz", ".zst")
LISTED = 200


def readable(name: str) -> bool:
    stem = name.lower()
    for packed in PACKED:
        stem = stem.removesuffix(packed)
    return stem.endswith(SUFFIXES)


def listed(folder: Path) -> list[str]:
    """Names of the data files in the folder and below, links left out."""
    names = (path for path in folder.rglob("*") if not _linked(path, folder) and path.is_file() and readable(path.name))
    return sorted(path.relative_to(folder).as_posix() for path in names)[:LISTED]


def inside(folder: Path | None, name: str) -> Path:
    """The file called `name` in the folder.

    Raises:
        RefusedError: there is none, or the name leads out of the folder. Both are told alike.
    """
    refusal = RefusedError(404, "no such file in the data folder; pick one of the list")
    if folder is None or not name or "\0" in name:
        raise refusal
    root = folder.resolve()
    try:
        path = (root / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise refusal from None
    if not path.is_relative_to(root) or _linked(root / name, root) or not path.is_file() or not readable(path.name):
        raise refusal
    return path


def _linked(path: Path, folder: Path) -> bool:
    """Whether a link stands anywhere between the folder and the file."""
    try:
        steps = path.relative_to(folder).parts
    except ValueError:
        return True
    return any(folder.joinpath(*steps[: k + 1]).is_symlink() for k in range(len(steps)))
