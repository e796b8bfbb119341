"""What every model is made of: ragged LSTM and GRU, attention over segments, the forest of the E-step, and exact
sums over segmentations.

All layers work on flat rows plus offsets and never pad. What predicts with the evidence model is NumPy: order.py,
phrases.py, phrase_scores.py, semi_markov.py; the rest is torch. `layers/native` is a second, faster implementation of
the same functions in C++.
"""
