// Matrix products in register tiles: many rows, given by pointers, times a matrix packed for the registers.

#pragma once

#include <algorithm>
#include <vector>

#include "vectors.h"

namespace {

constexpr int TILE = 6;             // rows of the register tile: 12 sums, 2 columns and 1 factor are 15 registers
constexpr int PANEL = 2 * WIDTH;    // columns of the register tile
constexpr int GROUP = TILE;        // sequences that go through time together

constexpr isize whole_vectors(isize n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }

// A matrix (rows, columns) cut into panels of PANEL columns, each stored row by row; the last may be WIDTH wide.
struct Panels {
  isize rows, columns, stride;  // stride: columns in whole vectors, room that a row of results needs
  std::vector<float> data;

  template <class Value>
  Panels(isize rows, isize columns, Value value)
      : rows(rows), columns(columns), stride(whole_vectors(columns)), data(rows * stride) {
    for (isize start = 0; start < columns; start += PANEL) {
      const isize width = panel_width(start);
      float* panel = data.data() + start * rows;
      for (isize k = 0; k < rows; ++k)
        for (isize j = 0; j < std::min(width, columns - start); ++j) panel[k * width + j] = value(k, start + j);
    }
  }
  isize panel_width(isize start) const { return std::min<isize>(PANEL, stride - start); }
};

// R rows by V vectors of sums that live in registers. Loops over them must be unrolled, or they go through memory.
template <int R, int V>
struct Sums {
  vec value[R][V];

  explicit Sums(const float* c, isize stride) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) value[r][v] = load(c + r * stride + v * WIDTH);
  }
  void to(float* c, isize stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) store(c + r * stride + v * WIDTH, value[r][v]);
  }
  // Adds an outer product: factor(r) for each row, a row of the panel b.
  template <class Factor>
  void add(Factor factor, const float* b) {
    vec column[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) column[v] = load(b + v * WIDTH);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float f = factor(r);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) value[r][v] += f * column[v];
    }
  }
};

// One tile of c = start + a1 b[: k1] + a2 b[k1 : k1 + k2]; a1 and a2 hold a pointer per row, b is a panel. Rows of start
// are start_stride apart: 0 if they are all the same.
template <int R, int V>
void tile(const float* const* a1, isize k1, const float* const* a2, isize k2, const float* b, const float* start,
          isize start_stride, float* c, isize stride) {
  Sums<R, V> sums(start, start_stride);
  for (isize k = 0; k < k1; ++k, b += V * WIDTH) sums.add([=](int r) { return a1[r][k]; }, b);
  for (isize k = 0; k < k2; ++k, b += V * WIDTH) sums.add([=](int r) { return a2[r][k]; }, b);
  sums.to(c, stride);
}

using Tile = void (*)(const float* const*, isize, const float* const*, isize, const float*, const float*, isize, float*,
                      isize);
constexpr Tile TILES[2][TILE] = {{tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>},
                                 {tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>}};

// c[r] = start[r] + a1[r] b[: k1] + a2[r] b[k1 :]; rows of c are b.stride apart, those of start are start_stride apart.
void multiply(isize rows, const float* const* a1, isize k1, const float* const* a2, isize k2, const Panels& b,
              const float* start, isize start_stride, float* c) {
  for (isize column = 0; column < b.columns; column += PANEL) {
    const bool wide = b.panel_width(column) == PANEL;
    for (isize r = 0; r < rows; r += TILE)
      TILES[wide][std::min<isize>(TILE, rows - r) - 1](
          a1 + r, k1, a2 + r, k2, b.data.data() + column * b.rows, start + r * start_stride + column, start_stride,
          c + r * b.stride + column, b.stride);
  }
}
// c[r] += the same
void multiply(isize rows, const float* const* a1, isize k1, const float* const* a2, isize k2, const Panels& b,
              float* c) {
  multiply(rows, a1, k1, a2, k2, b, c, b.stride, c);
}

// c[r] = start + a[r] b: every row starts with the same row, which is b.stride long.
void multiply(isize rows, const float* const* a, const Panels& b, const std::vector<float>& start, float* c) {
  multiply(rows, a, b.rows, a, 0, b, start.data(), 0, c);
}

// One tile of c += a^T b over `steps` rows of a strip of R columns and of a panel.
template <int R, int V>
void outer(const float* a, isize steps, const float* b, float* c, isize stride) {
  Sums<R, V> sums(c, stride);
  for (isize k = 0; k < steps; ++k, a += R, b += V * WIDTH) sums.add([=](int r) { return a[r]; }, b);
  sums.to(c, stride);
}

using Outer = void (*)(const float*, isize, const float*, float*, isize);
constexpr Outer OUTERS[2][TILE] = {{outer<1, 1>, outer<2, 1>, outer<3, 1>, outer<4, 1>, outer<5, 1>, outer<6, 1>},
                                   {outer<1, 2>, outer<2, 2>, outer<3, 2>, outer<4, 2>, outer<5, 2>, outer<6, 2>}};

}  // namespace
