// Ragged recurrent layers and attention for float32 on a CPU, behind a plain C interface; library.py calls it.
//
// Why it is fast: a group of sequences goes through all its time steps at once, so that the matrix products have enough
// rows while the weights, packed for the registers, stay in the nearest cache; activations follow in the same pass; no
// step is dispatched, padded or waited for. Threads take different groups, so results do not depend on their number.
//
// Rows are flat: sequence s is rows offsets[s] .. offsets[s + 1] - 1, and nothing is ever padded in memory.
//
//   attention.h   forest.h          what Python calls, in extern "C"; so do linear.h, multiscale.h,
//       |         recurrent.h       semi_markov.h, phrases.h, evidence.h, reading.h, adagrad.h
//       |         cells.h           one step of one row: LSTM, GRU
//   activations.h, gradients.h      exp, log, sigmoid, tanh; gradients of weights
//   products.h, threads.h           matrix products in register tiles
//   vectors.h, plain_vectors.h      rows, vector by vector

#include "adagrad.h"
#include "attention.h"
#include "evidence.h"
#include "forest.h"
#include "linear.h"
#include "multiscale.h"
#include "phrases.h"
#include "reading.h"
#include "recurrent.h"
#include "semi_markov.h"
