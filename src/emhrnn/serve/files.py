"""Files of the data folder, and no others: whatever a name looks like, the file that it leads to lies inside."""

from pathlib import Path, PurePosixPath

from emhrnn.corpus.readers.formats import COMPRESSION, SUFFIXES
from emhrnn.serve.limits import RefusedError

ENDINGS = (*SUFFIXES, ".txt")


def ending(name: str) -> str | None:
    """What tells the format of a file, and how it is packed, as .csv.gz; None for a file that is no data."""
    path = PurePosixPath(name.lower())
    packed = path.suffix if path.suffix in COMPRESSION else ""
    kind = path.with_suffix("").suffix if packed else path.suffix
    return kind + packed if kind in ENDINGS else None


def listed(folder: Path) -> list[str]:
    """Names of the data files in the folder and below; without links, and without names that no page can hold because
    they are not UTF-8."""
    files = (path for path in folder.rglob("*") if not _linked(path, folder) and path.is_file() and ending(path.name))
    names = (path.relative_to(folder).as_posix() for path in files)
    return sorted(name for name in names if not any("\ud800" <= letter <= "\udfff" for letter in name))


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
    if not path.is_relative_to(root) or _linked(root / name, root) or not path.is_file() or ending(path.name) is None:
        raise refusal
    return path


def _linked(path: Path, folder: Path) -> bool:
    """Whether a link stands anywhere between the folder and the file."""
    try:
        steps = path.relative_to(folder).parts
    except ValueError:
        return True
    return any(folder.joinpath(*steps[: k + 1]).is_symlink() for k in range(len(steps)))
