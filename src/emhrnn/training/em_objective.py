"""One step of Algorithm 1 on a batch: E-step for the boundaries, then the two terms of Q with r frozen.

    states = word layer                           once; does not depend on z
    zhat   = imputed boundaries                   outside the blocks
    E      = responsibilities of the blocks       pure, no gradient
    theta  : - log p(y | z, w), z ~ posterior     (or all configurations, weighted)
    pi     : - sum_t gamma_t log pi_t + (1 - gamma_t) log(1 - pi_t)

Phases: `warm-up` trains theta on random segmentations, so that it cannot lean on one of them; `indicator` trains pi
alone on top of it; `em` trains both. Whatever pi does, the share of boundaries is held at `rate`: the bias of the
indicator is moved to where the mean of pi is `rate` (a Lagrange multiplier on that constraint), and the threshold on
pi to the quantile that keeps it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.models import segmentation
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.training.config import EMConfig
from emhrnn.training.objective import LabelLoss, labels_of
