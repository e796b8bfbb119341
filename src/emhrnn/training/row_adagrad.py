"""Adagrad for tables of which a batch touches few rows: the more often an entry has moved, the shorter its next step.

    sum += g^2        entry -= rate * g / (sqrt(sum) + TINY)        of the rows that the gradient has

A rare word takes a full step each time it is seen, and one that is seen in every batch settles down. Adam gives both
the same step: the rare ones need it large, and then the frequent ones never rest. (torch's own Adagrad takes sparse
gradients, too, with a warning at each run about checks of them.)
"""

from typing import Any

import torch

from emhrnn.layers.native import kernels_for

TINY = 1e-5  # added to the root: a gradient of nothing but rounding would else make a full step


class RowAdagrad(torch.optim.Optimizer):
    """For parameters with sparse gradients, which must be coalesced."""

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, {"lr": lr})

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
                    settings = torch.tensor([group["lr"], TINY], dtype=torch.float32)
                    native.call("adagrad_rows", len(rows), g.shape[1:].numel(), rows, g, settings, table, state["sum"])
                    torch.autograd.graph.increment_version(table)  # or what is computed from it would seem up to date
                    continue
                total = state["sum"][rows].addcmul_(g, g)
                state["sum"][rows] = total
                table[rows] -= group["lr"] * g / total.sqrt_().add_(TINY)
