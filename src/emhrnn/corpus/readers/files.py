"""Which files a name stands for: the file itself, a pattern such as `part-*.csv`, or a folder of data files."""

from glob import glob
from pathlib import Path

from emhrnn.corpus.readers.datasets import is_dataset
from emhrnn.corpus.readers.formats import SUFFIXES, suffix_of
from emhrnn.errors import DataError


def data_files(name: Path) -> list[Path]:
    """The files in the order of their names. A pattern finds what it would in a shell: no name that begins with a dot,
    unless it says so; `**` is any folders. A folder per class, or a saved data set, stays one path, as `Source` reads
    it.

    Raises:
        DataError: nothing is there.
    """
    if name.is_dir():
        return [name] if is_dataset(name) else _in_folder(name)
    if name.exists():
        return [name]
    if str(name) == "-":
        raise DataError("the standard input can be read only once, and data is read more often; give a file")
    if not any(letter in str(name) for letter in "*?["):
        raise DataError(f"{name} does not exist; check the name")
    found = sorted(path for path in map(Path, glob(str(name), recursive=True)) if path.is_file())
    if not found:
        raise DataError(f"no file matches {name}; check the pattern")
    return found


def _in_folder(folder: Path) -> list[Path]:
    """Data files at any depth; names that begin with a dot or an underscore are other programs' notes."""
    inside = (path for path in folder.rglob("*") if not any(p[0] in "._" for p in path.relative_to(folder).parts))
    return sorted(path for path in inside if path.is_file() and suffix_of(path) in SUFFIXES) or [folder]
