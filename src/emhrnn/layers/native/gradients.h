// Gradients of weights: sums of outer products over all rows, taken while the rows are in the nearest cache.

#pragma once

#include <algorithm>
#include <vector>

#include "products.h"
#include "threads.h"

namespace {

// Sums of outer products, out (columns, stride) += d^T [first | second | 1], over rows that are added one by one while
// they are in the nearest cache. stride: first_size + second_size + 1 in whole vectors.
class WeightGradient {
 public:
  WeightGradient(isize columns, isize first_size, isize second_size, float* out)
      : columns(columns), first_size(first_size), second_size(second_size),
        stride(padded(first_size, second_size)), out(out),
        strips((columns + TILE - 1) / TILE * STRIP), panels(stride * BLOCK), row(stride) {
    row[first_size + second_size] = 1.f;
  }
  ~WeightGradient() { flush(); }
  static isize padded(isize first_size, isize second_size) { return whole_vectors(first_size + second_size + 1); }

  void add(const float* d, const float* first, const float* second) {  // null: zeros
    if (first) copy(first_size, first, row.data());
    if (second)
      copy(second_size, second, row.data() + first_size);
    else
      std::fill_n(row.data() + first_size, second_size, 0.f);
    float *to_panel = panels.data(), *to_strip = strips.data();
    const isize k = rows, end = stride;  // members are reloaded after each store of a vector, locals are not
    const float* from = row.data();
    isize j = 0;
    for (; j + PANEL <= end; j += PANEL, to_panel += BLOCK * PANEL) {
      store(to_panel + k * PANEL, load(from + j));
      store(to_panel + k * PANEL + WIDTH, load(from + j + WIDTH));
    }
    if (j < end) store(to_panel + k * WIDTH, load(from + j));
    isize i = 0;
    const isize last = columns;
    for (; i + whole_vectors(TILE) <= last; i += TILE, to_strip += STRIP)
      for (isize v = 0; v < TILE; v += WIDTH) store(to_strip + k * TILE + v, load(d + i + v));
    for (; i < last; i += TILE, to_strip += STRIP) {  // above, a vector may pass the strip: the next row mends it
      const isize height = std::min<isize>(TILE, last - i);
      std::copy_n(d + i, height, to_strip + k * height);
    }
    if (++rows == BLOCK) flush();
  }

 private:
  static constexpr isize BLOCK = 128, STRIP = BLOCK * TILE + WIDTH;  // a strip's last row may be written too far
  const isize columns, first_size, second_size, stride;
  float* const out;
  std::vector<float> strips, panels, row;
  isize rows = 0;

  void flush() {
    if (!rows) return;
    for (isize panel = 0; panel < stride; panel += PANEL)
      for (isize i = 0; i < columns; i += TILE)
        OUTERS[stride - panel >= PANEL][std::min<isize>(TILE, columns - i) - 1](
            strips.data() + i / TILE * STRIP, rows, panels.data() + panel * BLOCK, out + i * stride + panel, stride);
    rows = 0;
  }
};

// body(gradient, part, parts) for each part of the tasks, with sums of its own; their total goes to out. How many parts
// there are depends on the data alone, so the result does not depend on the number of threads.
template <class Body>
void sum_weight_gradients(isize tasks, isize columns, isize first_size, isize second_size, float* out, isize threads,
                          Body body) {
  const isize parts = std::clamp<isize>(tasks / 2, 1, 8);
  const isize size = columns * WeightGradient::padded(first_size, second_size);
  std::vector<float> sums(out ? parts * size : 0);
  parallel(parts, threads, [&](isize part) {
    WeightGradient gradient(columns, first_size, second_size, out ? sums.data() + part * size : nullptr);
    body(gradient, part, parts);
  });
  if (!out) return;
  std::copy_n(sums.data(), size, out);
  for (isize part = 1; part < parts; ++part)
    for (isize i = 0; i < size; ++i) out[i] += sums[part * size + i];
}

}  // namespace

extern "C" {

// How many floats a row of weight gradients of that many columns takes.
EXPORT int64_t padded_columns(int64_t columns) { return whole_vectors(columns); }

}  // extern "C"
