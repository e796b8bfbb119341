"""What every model is made of: ragged LSTM and GRU, attention over segments, the forest of the E-step, and exact
sums over segmentations.

All layers work on flat rows plus offsets and never pad. They are pure torch; `layers/native` is a second, faster
implementation of the same functions that is used where a C++ compiler is at hand.
"""

from emhrnn.layers.attention import AttentionPool, attend, attend_paths, pair_attention
from emhrnn.layers.dropout import dropout
from emhrnn.layers.evidence import log_partition
from emhrnn.layers.forest import forest_h
from emhrnn.layers.linear import dense, linear, row_dots
from emhrnn.layers.packing import Packing, pack
from emhrnn.layers.recurrent import GRU, LSTM, Bidirectional, LearnedRows, Recurrent, recurrent_layer
from emhrnn.layers.slopes import Passes, layer_pass

__all__ = [
    "GRU",
    "LSTM",
    "AttentionPool",
    "Bidirectional",
    "LearnedRows",
    "Packing",
    "Passes",
    "Recurrent",
    "attend",
    "attend_paths",
    "dense",
    "dropout",
    "forest_h",
    "layer_pass",
    "linear",
    "log_partition",
    "pack",
    "pair_attention",
    "recurrent_layer",
    "row_dots",
]
