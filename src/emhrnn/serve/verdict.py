"""What a run says of a text where it cannot say why: its label and its probabilities."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from emhrnn.api import labels_of
from emhrnn.serve.state import Served
from emhrnn.serve.written import Written


@dataclass(frozen=True, eq=False)
class Verdict:
    model: str
    classes: tuple[str, ...]
    probabilities: Float32[np.ndarray, " classes"]
    predicted: str | tuple[str, ...]


async def verdict(served: Served, written: Written) -> Verdict:
    run = served.model.run
    table = await served.predict([written if served.reads_ids else Written(written.text)])
    return Verdict(run.told_model, run.classes, table[0], labels_of(run, table)[0])
