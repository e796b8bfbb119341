"""Charts of training: accuracy, loss and phrase ends by epoch, for the page of the runs and the report of the demo."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from emhrnn.explain.charts import Line, figure, line_chart
from emhrnn.explain.page import percent
from emhrnn.training.progress import Epoch

KEPT = "on the validation data; the ring is the epoch that was kept"


def history_charts(histories: Mapping[str, Sequence[Epoch]], accuracies: Sequence[tuple[str, float]] = ()) -> str:
    """One line for each run, by its name, and for a single run its training loss beside that of validation.
    `accuracies` are named ones to compare with."""

    def lines(value: Callable[[Epoch], float | None]) -> list[Line]:
        points = {
            name: [(epoch.epoch + 1, at) for epoch in epochs if (at := value(epoch)) is not None]
            for name, epochs in histories.items()
        }
        return [Line(name if len(histories) > 1 else "", some, kept[name]) for name, some in points.items() if some]

    kept = {name: max((e.epoch + 1 for e in epochs if e.best), default=None) for name, epochs in histories.items()}
    losses = lines(lambda epoch: epoch.valid["loss"])
    if len(histories) == 1:
        (epochs,) = histories.values()
        training = Line("training", [(epoch.epoch + 1, epoch.train_loss) for epoch in epochs])
        losses = [replace(losses[0], name="validation"), training]
    rates = lines(lambda epoch: epoch.boundaries.get("boundary_rate"))
    drawn = [
        ("Accuracy", KEPT, lines(lambda epoch: epoch.valid["accuracy"]), percent, accuracies),
        ("Loss", "per document, by epoch", losses, lambda value: f"{value:.2f}", ()),
        ("Boundaries", "share of free positions that end a phrase", rates, percent, (("none", 0.0),)),
    ]
    return "".join(
        figure(title, told, line_chart(some, label=f"{title} by epoch", show=show, references=others))
        for title, told, some, show, others in drawn
        if some
    )
