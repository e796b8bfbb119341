"""How large the simulation is: the paper's numbers of documents, and how long each kind of learning lasts."""

from dataclasses import asdict, dataclass, field
from typing import Any

from emhrnn.paper.simulation.detectors import DETECTORS, DetectorSchedule
from emhrnn.paper.simulation.joint import Schedule


@dataclass(frozen=True)
class Sizes:
    train: int = 10_000
    test: int = 1_000
    rounds: int = 35  # of EM where theta is known
    joint: Schedule = field(default_factory=Schedule)  # of EM where nothing is
    detector: DetectorSchedule = field(default_factory=DetectorSchedule)
    timed: int = 50  # documents of a measurement of time

    @classmethod
    def quick(cls) -> "Sizes":
        """Minutes instead of an hour; the figures are those of a small experiment."""
        return cls(
            train=1_000, test=300, rounds=10, timed=20,
            joint=Schedule(epochs=3, documents=100), detector=DetectorSchedule(epochs=2, documents=100),
        )  # fmt: skip

    def arguments(self, reading: str, method: str) -> dict[str, Any]:
        """What a job of this reading and method depends on, so that a change elsewhere leaves it done."""
        kind = {"joint": asdict(self.joint)} if reading == "vocabulary" else {"rounds": self.rounds}
        if method in DETECTORS:
            kind = {"detector": asdict(self.detector)}
        return {"train": self.train, "test": self.test, **kind}

    @classmethod
    def from_arguments(cls, given: dict[str, Any]) -> "Sizes":
        kinds = {"joint": Schedule, "detector": DetectorSchedule}
        return cls(**{key: kinds[key](**value) if key in kinds else value for key, value in given.items()})

    def epochs(self, reading: str, method: str) -> int:
        if method in DETECTORS:
            return self.detector.epochs
        return self.joint.epochs if reading == "vocabulary" else self.rounds
