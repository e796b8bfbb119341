"""`emhrnn export`: a trained model for programs without this package: a web page, or a file of ONNX (evidence)."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.models.evidence_reader import EvidenceReader
from emhrnn.training.run import Run


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    bytes: int  # of the model
    phrases: int
    words: int

    @classmethod
    def of(cls, run: Run, path: Path, size: int) -> "Exported":
        """Of a run that can be exported."""
        return cls(path, size, len(exportable(run).index.keys), len(run.vocabulary))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"path": str(self.path)}


def unsupported(what: str) -> ConfigError:
    """The error for a run that an export cannot take; `what` the run is."""
    return ConfigError(f"this run is {what}; only evidence with learned segmentation can be exported; train one")


def exportable(run: Run) -> EvidenceReader:
    """The reader of the run's model. Raises a ConfigError unless it is an evidence model that sums over all
    segmentations."""
    reader = getattr(run.model, "reader", run.model)  # a model that was just trained has one
    if not isinstance(reader, EvidenceReader):
        raise unsupported(run.config.model.name)
    if reader.config.segmentation != "learned":
        raise unsupported(f"evidence with segmentation {reader.config.segmentation}")
    return reader
