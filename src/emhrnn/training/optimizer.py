"""The optimiser: AdamW or SGD for the layers, and sparse ones for word vectors that are tuned and for n-grams.

A batch holds a few hundred distinct words of a vocabulary of a hundred thousand. Their gradient is kept sparse, so that
a step costs what the words of the batch cost, not what the vocabulary costs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from emhrnn.layers.native.torch_kernels import kernels_for
from emhrnn.models.model import DocumentModel
from emhrnn.training.config import TrainingConfig

VECTORS, NGRAMS = "embedding.table", "ngrams.table"  # parameters of which a batch touches few rows


class Optimizer:
    """Steps every parameter of a model; gradients of word vectors may be sparse."""

    def __init__(self, model: DocumentModel, config: TrainingConfig, *, indicator_pace: float = 1.0) -> None:
        """`indicator_pace` multiplies the learning rate of EM-HRNN's indicator layer."""
        rows = {name: p for name, p in model.named_parameters() if name.endswith((VECTORS, NGRAMS))}
        dense = {name: p for name, p in model.named_parameters() if name not in rows}
        scales = model.learning_rate_scales()
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}  # by weight decay and pace
        for name, p in dense.items():
            indicator = "indicator" in name.split(".")
            # Weight decay acts on matrices alone: shrinking biases and context vectors has no use.
            weight_decay = config.weight_decay if p.ndim > 1 and not indicator else 0.0
            pace = indicator_pace if indicator else scales.get(name, 1.0)
            groups.setdefault((weight_decay, pace), []).append(p)
        layers = [{"params": ps, "weight_decay": decay, "pace": pace} for (decay, pace), ps in groups.items()]
        vectors, ngrams = (
            [{"params": [p], "pace": scales.get(name, 1.0)} for name, p in rows.items() if name.endswith(kind)]
            for kind in (VECTORS, NGRAMS)
        )
        self.parameters = [*dense.values(), *rows.values()]
        self._names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
        self.parts: list[torch.optim.Optimizer] = []
        if config.optimizer == "sgd":
            if layers:
                self.parts.append(torch.optim.SGD(layers, lr=config.learning_rate, momentum=config.momentum))
            if rows:  # all at one pace: that of n-grams is made for Adagrad
                self.parts.append(torch.optim.SGD(list(rows.values()), lr=config.learning_rate))
        else:
            if layers:
                self.parts.append(torch.optim.AdamW(layers, lr=config.learning_rate))
            if vectors:
                self.parts.append(torch.optim.SparseAdam(vectors, lr=config.learning_rate))
            if ngrams:
                self.parts.append(RowAdagrad(ngrams, lr=config.learning_rate, decay=model.row_decay))

    def set_learning_rate(self, rate: float) -> None:
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * group.get("pace", 1.0)

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    def clip(self, largest: float) -> float:
        """Scale all gradients down to a common norm of at most `largest`; the norm before."""
        gradients = [self._values(p) for p in self.parameters if p.grad is not None]
        if not gradients:  # a step that moved its parameters itself, as Newton's does
            return 0.0
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if norm > largest:
            torch._foreach_mul_(gradients, largest / norm)
        return float(norm)

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Tensor]:
        """What the steps so far have left behind, such as `exp_avg/output.weight`. The learning rate is set before each
        step, so it is no part of it."""
        return {
            f"{key}/{self._names[p]}": torch.as_tensor(value)  # SparseAdam counts its steps in an int
            for part in self.parts
            for p, state in part.state.items()
            for key, value in state.items()
            if value is not None
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        homes = {self._names[p]: part for part in self.parts for group in part.param_groups for p in group["params"]}
        parameters = {name: p for p, name in self._names.items()}
        for place, tensor in state.items():
            key, _, name = place.partition("/")
            counter = tensor.ndim == 0 and not tensor.is_floating_point()
            homes[name].state[parameters[name]][key] = int(tensor) if counter else tensor.clone()

    @staticmethod
    def _values(parameter: nn.Parameter) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            if bool((gradient._indices()[0].diff() > 0).all()):  # autograd forgets that it was coalesced
                gradient._coalesced_(True)
            gradient = parameter.grad = gradient.coalesce()
            return gradient._values()
        return gradient


EVERY = 10  # steps between updates: an update costs a pass over all weights, a step only over those of its batch
TINY = 1e-5  # added to the root: a gradient of nothing but rounding would else make a full step


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad for tables of which a batch touches few rows; their gradients are sparse and must be coalesced.

        sum += g^2    entry -= rate * (g / (sqrt(sum) + TINY) + decay * entry)    of the rows that the gradient has

    A rare word takes a full step each time it is seen, and one that is seen in every batch settles down. Adam gives
    both the same step: large enough for the rare ones, it never lets the frequent ones rest. (torch's own Adagrad takes
    sparse gradients, too, with a warning at each run about checks of them.)
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, decay: float = 0.0) -> None:
        super().__init__(groups, {"lr": lr})
        self.decay = decay

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # no closures: who would call them?
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if not state:
                    state["sum"] = torch.zeros_like(table)
                rows, g = table.grad.indices()[0], table.grad.values()  # (rows,), (rows, classes)
                if native := kernels_for(table, state["sum"], g):
                    settings = torch.tensor([group["lr"], TINY, self.decay], dtype=torch.float32)
                    native.call("adagrad_rows", len(rows), g.shape[1:].numel(), rows, g, settings, table, state["sum"])
                    torch.autograd.graph.increment_version(table)  # or what is computed from it would seem up to date
                    continue
                total = state["sum"][rows].addcmul_(g, g)
                state["sum"][rows] = total
                kept = (1 - group["lr"] * self.decay) * table[rows]
                table[rows] = kept - group["lr"] * g / total.sqrt_().add_(TINY)


class WeightAverage:
    """A moving average of the parameters of `model` over about `epochs` epochs, which training validates and keeps in
    place of the weights of the last step; 0 epochs: the parameters themselves.

        average += (weights - average) / min(n, window)        at every EVERY-th step; n counts these updates

    It smooths out what single batches do, most of all where one number acts on every document, such as the strength of
    the evidence.
    """

    def __init__(self, model: nn.Module, epochs: float) -> None:
        self.parameters, self.epochs = dict(model.named_parameters()), epochs
        self.values: dict[str, Tensor] = {}  # by parameter name, from the first update on
        self.updates = 0

    @torch.no_grad()
    def update(self, step: int, steps_per_epoch: int) -> None:
        """After step number `step` (from 0)."""
        if not self.epochs or step % EVERY:
            return
        self.updates += 1
        window = max(self.epochs * steps_per_epoch / EVERY, 1.0)
        for name, parameter in self.parameters.items():
            if name in self.values:
                self.values[name].lerp_(parameter, 1 / min(self.updates, window))
            else:
                self.values[name] = parameter.detach().clone()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """In the block, the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, value in self.values.items():
            parameter = self.parameters[name]
            held = parameter.clone()
            parameter.copy_(value)
            value.copy_(held)

    def state_dict(self) -> dict[str, Tensor]:
        """The average, for a checkpoint; empty where there is none."""
        return {**self.values, "updates": torch.tensor(self.updates)} if self.values else {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Put back what `state_dict` gave."""
        self.values = {name: value.clone() for name, value in state.items() if name != "updates"}
        self.updates = int(state["updates"]) if state else 0
