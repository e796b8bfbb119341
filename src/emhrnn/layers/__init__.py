"""What every model is made of: ragged LSTM and GRU, attention over segments, the forest of the E-step, and exact
sums over segmentations.

All layers work on flat rows plus offsets and never pad. They are pure torch; `layers/native` is a second, faster
implementation of the same functions that is used where a C++ compiler is at hand.
"""

from emhrnn.layers.attention import AttentionPool, attend
from emhrnn.layers.bidirectional import Bidirectional
from emhrnn.layers.dropout import dropout
from emhrnn.layers.forest import attend_paths, forest_h
from emhrnn.layers.gru import GRU
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.linear import linear
from emhrnn.layers.lstm import LSTM
from emhrnn.layers.packing import Packing, pack
from emhrnn.layers.pairs import pair_attention
from emhrnn.layers.recurrent import Recurrent, recurrent_layer
from emhrnn.layers.row_dots import row_dots
from emhrnn.layers.semi_markov import best_cut, log_partition
from emhrnn.layers.state_slopes import Pass, layer_pass

__all__ = [
    "GRU",
    "LSTM",
    "AttentionPool",
    "Bidirectional",
    "LearnedRows",
    "Packing",
    "Pass",
    "Recurrent",
    "attend",
    "attend_paths",
    "best_cut",
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
