"""`emhrnn models`: every model that can be trained."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from emhrnn.cli.output import Answer, aligned

WEIGHTS = "pretrained weights"  # that a model needs
CLASSES, WORDS, SIZE = 5, 1000, 100  # of the models that are built to count their parameters
LEARNS = {"em": "EM", "gradient": "gradient", "fit": "one fit"}
LEGEND = f"""
parameters  without word vectors, for {CLASSES} classes and default settings; - if they depend on the data, or no torch
training    by EM (learns phrases), by gradient descent, or in one fit
shows       what `emhrnn explain` and the viewer can show: weights of words, phrases and sentences; phrase boundaries
needs       beyond texts and labels

Train one with: emhrnn train DATA --out RUN --model NAME"""


@dataclass(frozen=True)
class ModelSummary:
    """One model with its default settings."""

    name: str
    parameters: int | None  # without word vectors; None: they depend on the data or on given weights
    learns: str
    shows: tuple[str, ...]
    needs: tuple[str, ...]
    reference: str
    settings: Mapping[str, Mapping[str, Any]]  # its own defaults, by section
    reads: tuple[str, ...]  # the settings of [model] that it uses


def models() -> Answer:
    """List every model: how it is trained, what it can show, what it needs, where it comes from.

    \b
    Examples:
      emhrnn models
      emhrnn models --json                                     # with the settings of each
      emhrnn train reviews.csv --out run --model hn-att        # train one of them

    Writes nothing. What each model is: docs/models.md.
    """
    rows = model_summaries()
    table = [["name", "parameters", "training", "shows", "needs", "reference"]]
    table += [
        [
            row.name,
            "-" if row.parameters is None else f"{row.parameters:,}",
            LEARNS[row.learns],
            ", ".join(row.shows) or "-",
            ", ".join(need.removeprefix("the extra ") for need in row.needs) or "-",
            row.reference,
        ]
        for row in rows
    ]
    return Answer({"models": [asdict(row) for row in rows]}, f"{aligned(table, numbers={1})}\n{LEGEND}")


def model_summaries() -> list[ModelSummary]:
    """Every model, in the order of the table of models. Those with a fixed number of parameters are built, if torch is
    installed."""
    from emhrnn.extras import installed
    from emhrnn.models.table import MODELS

    counts = installed("torch")
    return [
        ModelSummary(
            name=name,
            parameters=_parameters(name) if counts and row.learns != "fit" and WEIGHTS not in row.needs else None,
            learns=row.learns,
            shows=row.shows,
            needs=row.needs,
            reference=row.reference,
            settings=row.defaults,
            reads=tuple(sorted(row.config.model_fields.keys() - {"name"})),
        )
        for name, row in MODELS.items()
    ]


def _parameters(name: str) -> int:
    """With one user and one product, where the model needs ids."""
    import torch

    from emhrnn.models.row import Facts
    from emhrnn.models.table import MODELS, build_model

    config, facts = MODELS[name].config(name=name), Facts(classes=CLASSES, users=1, products=1)
    model = build_model(config, facts, torch.zeros(WORDS, SIZE), [str(word) for word in range(WORDS)], 0)
    return sum(p.numel() for part, p in model.named_parameters() if not part.startswith("embedding."))
