"""A folder per class: `reviews/good/17.txt` is a document of the class `good`, and its id is `good/17.txt`."""

from collections.abc import Iterator
from pathlib import Path

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import Meter, explain_damage
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError


def class_files(folder: Path) -> list[Path]:
    """The documents, class by class in the order of their names; hidden files and loose files are passed over."""
    files = []
    for class_folder in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        texts = sorted(path for path in class_folder.glob("*.txt") if not path.name.startswith("."))
        if not texts:
            raise DataError(
                f"{class_folder} holds no .txt file; give a folder whose every folder is a class with .txt documents"
            )
        files += texts
    return files


def read_class_folders(reading: Reading) -> Iterator[Record]:
    reading.taken.update(text="file", label="folder")
    for path in class_files(reading.path):
        size = path.stat().st_size
        meter = reading.meter or Meter(size)
        with explain_damage(path), meter.file(size, lambda: 0):
            text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
        record = reading.record(1, {"text": text, "label": path.parent.name, "id": f"{path.parent.name}/{path.name}"})
        yield record._replace(where=record.where._replace(file=str(path)))
