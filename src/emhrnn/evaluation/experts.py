r"""How much each expert of a product of experts has a say, fitted on data that none of them has learned from.

    logits = sum over experts e of share_e * logits_e,        share_e >= 0

Each expert was fitted to the labels as if it were alone, so their plain product counts twice what several of them know,
and an expert that knows its training documents by heart is heard too much. The shares make the labels of the
validation data most likely, with a normal prior around 1, which decides where documents are few:

    minimise    sum over documents of -log p(label) + 1/2 sum_e (share_e - 1)^2

It is convex in the shares.
"""

import numpy as np
from jaxtyping import Float, Float64
from scipy.optimize import minimize

from emhrnn.evaluation.calibration import Labels, undecided

MOST = 10.0  # share of an expert. What lies above comes from a few documents
ENOUGH = 50_000  # documents, from all over the data: more would not move the shares, and would take memory
_CLOSE = 1e-9  # to the least loss, per document

Said = Float[np.ndarray, "experts documents classes"]


def fit_shares(said: Said, labels: Labels) -> tuple[Float64[np.ndarray, " experts"], str]:
    """Of each expert; and a remark where the data could not decide, so that all count as they are."""
    alike = np.ones(len(said))
    some = slice(None, None, 1 + len(labels) // (ENOUGH + 1))
    x, labels = said[:, some].astype(np.float64), labels[some]
    if remark := undecided(x.sum(axis=0), labels):
        return alike, remark
    fitted = minimize(
        _loss, alike, args=(x, labels), jac=True, method="L-BFGS-B", bounds=[(0, MOST)] * len(x),
        options={"ftol": _CLOSE, "gtol": _CLOSE},
    )  # fmt: skip
    return fitted.x, ""


def _loss(shares: Float64[np.ndarray, " experts"], x: Said, labels: Labels) -> tuple[float, np.ndarray]:
    """What is minimised, by document, and its gradient: that of a document is E[x_e] - x_e of the label."""
    logits = np.tensordot(shares, x, axes=1)  # (documents, classes)
    if labels.ndim == 2:
        loss = (np.logaddexp(0, logits) - (labels > 0.5) * logits).sum()
        wrong = np.exp(-np.logaddexp(0, -logits)) - (labels > 0.5)  # sigmoid, without overflow
    else:
        true = np.arange(len(labels)), labels
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        loss = -log_p[true].sum()
        wrong = np.exp(log_p)
        wrong[true] -= 1
    gradient = np.tensordot(x, wrong, axes=2)  # (experts,)
    n = len(labels)
    return float(loss + 0.5 * ((shares - 1) ** 2).sum()) / n, (gradient + shares - 1) / n
