// Ragged recurrent layers and attention for float32 on a CPU, behind a plain C interface; library.py calls it.
//
// Why it is fast: a group of sequences goes through all its time steps at once, so that the matrix products have enough
// rows while the weights, packed for the registers, stay in the nearest cache; activations follow in the same pass; no
// step is dispatched, padded or waited for. Threads take different groups, so results do not depend on their number.
//
// Rows are flat: sequence s is rows offsets[s] .. offsets[s + 1] - 1, and nothing is ever padded in memory.
// It is written in GCC's vector extensions (GCC and Clang, any CPU); the build chooses the width by its -m flags.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

using isize = int64_t;
#define INLINE inline __attribute__((always_inline))  // what must not cost a call per vector

// ---------------------------------------------------------------------------------------------------------- vectors

#if defined(__AVX512F__)
constexpr int WIDTH = 16;
#elif defined(__AVX__)
constexpr int WIDTH = 8;
#else
constexpr int WIDTH = 4;
#endif

typedef float vec __attribute__((vector_size(WIDTH * 4)));
typedef int32_t ivec __attribute__((vector_size(WIDTH * 4)));
typedef float unaligned_vec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

INLINE vec load(const float* p) { return *reinterpret_cast<const unaligned_vec*>(p); }
INLINE void store(float* p, vec v) { *reinterpret_cast<unaligned_vec*>(p) = v; }

// To [-bound, bound]; a NaN stays one.
INLINE vec clamp(vec x, float bound) {
  const vec high = vec{} + bound, low = -high;
#if defined(__AVX512F__)
  return _mm512_min_ps(high, _mm512_max_ps(low, x));
#elif defined(__AVX__)
  return _mm256_min_ps(high, _mm256_max_ps(low, x));
#else
  x = low > x ? low : x;
  return high < x ? high : x;
#endif
}
inline float sum(vec v) {
  float total = 0;
  for (int i = 0; i < WIDTH; ++i) total += v[i];
  return total;
}

// Asks for a row that will be read soon: groups jump between sequences, which the CPU does not foresee.
inline void prefetch(isize size, const float* row) {
  constexpr isize LINE = 16;
  for (isize j = 0; j < size; j += LINE) __builtin_prefetch(row + j, 0, 3);
}

// How for_vectors reads and writes one vector of a row. In a reduction, once(v) counts every entry once.
struct Whole {
  static vec in(const float* p) { return load(p); }
  static void out(float* p, vec v) { store(p, v); }
  static vec once(vec v) { return v; }
};
struct Last : Whole {  // moved back to end with the row: its first entries have been seen before
  isize fresh;
  vec once(vec v) const {
    static constexpr float ZEROS_AND_ONES[2 * WIDTH] = {
#define ZEROS 0, 0, 0, 0
#define ONES 1, 1, 1, 1
#if defined(__AVX512F__)
        ZEROS, ZEROS, ZEROS, ZEROS, ONES, ONES, ONES, ONES
#elif defined(__AVX__)
        ZEROS, ZEROS, ONES, ONES
#else
        ZEROS, ONES
#endif
    };
    return v * load(ZEROS_AND_ONES + fresh);
  }
};
struct Short {  // a row shorter than a vector; the lanes beyond are zeros
  isize size;
  vec in(const float* p) const {
    vec v = {};
    std::memcpy(&v, p, size * sizeof(float));
    return v;
  }
  void out(float* p, vec v) const { std::memcpy(p, &v, size * sizeof(float)); }
  static vec once(vec v) { return v; }
};

// body(j, row) for vectors that begin at entry j and together cover a row. Because the last one overlaps the one
// before, the body must not write what it reads.
template <class Body>
INLINE void for_vectors(isize size, Body body) {
  if (size < WIDTH) return body(isize{0}, Short{size});
  for (isize j = 0; j + WIDTH <= size; j += WIDTH) body(j, Whole{});
  if (size % WIDTH) body(size - WIDTH, Last{{}, size % WIDTH});
}

inline void copy(isize size, const float* from, float* to) {
  for_vectors(size, [=](isize j, auto row) { row.out(to + j, row.in(from + j)); });
}

inline float dot(isize size, const float* a, const float* b) {
  vec total = {};
  for_vectors(size, [&](isize j, auto row) { total += row.once(row.in(a + j) * row.in(b + j)); });
  return sum(total);
}

// ------------------------------------------------------------------------------------------------ exp, sigmoid, tanh

// e^x = (1 + fraction) scale, for |x| <= 87: x = (n + f) ln 2 with |f| <= 1/2, scale = 2^n, and 2^f - 1 is f times a
// polynomial fitted to a relative error of 1e-8.
struct Power {
  vec fraction, scale;
};
INLINE Power power(vec x) {
  constexpr float log2_e = 1.44269504f, to_integer = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  const vec shifted = x * log2_e + to_integer, f = x * log2_e - (shifted - to_integer);
  vec p = f * 0.000154035122f + 0.00133907353f;
  p = p * f + 0.00961823761f;
  p = p * f + 0.0555035733f;
  p = p * f + 0.240226492f;
  p = p * f + 0.693147182f;
  const ivec exponent = ((ivec)shifted << 23) + (127 << 23);  // casts keep the bits: the lowest of `shifted` are n
  return {p * f, (vec)exponent};
}
INLINE vec exp(vec x) {
  const Power e = power(clamp(x, 87.f));
  return e.fraction * e.scale + e.scale;
}
inline float exp(float x) { return exp(vec{} + x)[0]; }
INLINE vec sigmoid(vec x) { return 1.f / (1.f + exp(-x)); }
INLINE vec exp_less_one(vec x) {  // e^2x - 1, without cancellation near 0; tanh x = it / (it + 2)
  const Power e = power(clamp(x, 10.f) * 2.f);
  return e.fraction * e.scale + (e.scale - 1.f);
}
INLINE vec tanh(vec x) {
  const vec less_one = exp_less_one(x);
  return less_one / (less_one + 2.f);
}
INLINE vec one_plus_exp(vec x) {  // 1 / sigmoid(-x), so bounded that three such factors stay finite
  const Power e = power(clamp(x, 30.f));
  return e.fraction * e.scale + (e.scale + 1.f);
}

// ------------------------------------------------------------------------------------------------- matrix products

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

// -------------------------------------------------------------------------------------------------------- threads

// body(task) for every task. Threads live for one call: nothing is left behind that a fork or an exit could trip over.
template <class Body>
void parallel(isize tasks, isize threads, Body body) {
  std::atomic<isize> next{0};
  const auto work = [&] {
    for (isize task; (task = next.fetch_add(1)) < tasks;) body(task);
  };
  std::vector<std::thread> others;
  for (isize i = 1; i < std::min(threads, tasks); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

// ------------------------------------------------------------------------------------------------- weight gradients

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
  std::vector<float> sums(parts * size);
  parallel(parts, threads, [&](isize part) {
    WeightGradient gradient(columns, first_size, second_size, sums.data() + part * size);
    body(gradient, part, parts);
  });
  if (!out) return;
  std::copy_n(sums.data(), size, out);
  for (isize part = 1; part < parts; ++part)
    for (isize i = 0; i < size; ++i) out[i] += sums[part * size + i];
}

// ---------------------------------------------------------------------------------------------------------- cells

// A cell turns a row of four blocks of H gates into states, and gradients of states into gradients of gates. INPUT and
// STATE say which block of the weights feeds each gate (-1: none), so that both cells share the code around them.
// `kept` (4H) takes the activated gates if KEEP, and is scratch if not.

struct LSTM {  // gates i f g o; the memory is c
  static constexpr int INPUT[4] = {0, 1, 2, 3}, STATE[4] = {0, 1, 2, 3};

  template <bool KEEP>
  static void forward(isize H, const float* gates, const float*, const float* c_prev, float* kept, float* c, float* h) {
    if (!KEEP) return states(H, gates, nullptr, c_prev, kept, c, h);
    for_vectors(H, [=](isize j, auto row) {
      const vec i = sigmoid(row.in(gates + j)), f = sigmoid(row.in(gates + H + j));
      const vec g = tanh(row.in(gates + 2 * H + j)), o = sigmoid(row.in(gates + 3 * H + j));
      vec memory = i * g;
      if (c_prev) memory += f * row.in(c_prev + j);
      row.out(c + j, memory);
      row.out(kept + 3 * H + j, o);
      row.out(kept + j, i), row.out(kept + H + j, f), row.out(kept + 2 * H + j, g);
    });
    // A loop of its own: tanh(c) would wait for the gates, and the CPU sees only so far ahead.
    for_vectors(H, [=](isize j, auto row) { row.out(h + j, row.in(kept + 3 * H + j) * tanh(row.in(c + j))); });
  }

  // The same states when nobody asks for the activated gates: over a common denominator there are two divisions, not
  // five. The gates are the sum of two rows, if `more` is given. scratch: H floats
  static void states(isize H, const float* gates, const float* more, const float* c_prev, float* scratch, float* c,
                     float* h) {
    for_vectors(H, [=](isize j, auto row) {
      const auto gate = [&](int k) {
        const vec sum = row.in(gates + k * H + j);
        return more ? sum + row.in(more + k * H + j) : sum;
      };
      const vec i = one_plus_exp(-gate(0)), g = exp_less_one(gate(2)), i_g = i * (g + 2.f);
      if (c_prev) {
        const vec f = one_plus_exp(-gate(1));
        row.out(c + j, (g * f + row.in(c_prev + j) * i_g) / (i_g * f));
      } else {
        row.out(c + j, g / i_g);
      }
      row.out(scratch + j, one_plus_exp(-gate(3)));
    });
    for_vectors(H, [=](isize j, auto row) {
      const vec t = exp_less_one(row.in(c + j));
      row.out(h + j, t / ((t + 2.f) * row.in(scratch + j)));
    });
  }

  // carry: the gradient of c from the step after
  static void backward(isize H, const float* gates, const float*, const float* c_prev, const float* c,
                       const float* dh_out, const float* dh_next, const float* carry_next, float* carry,
                       float* d_gates) {
    for_vectors(H, [=](isize j, auto row) {
      const vec i = row.in(gates + j), f = row.in(gates + H + j);
      const vec g = row.in(gates + 2 * H + j), o = row.in(gates + 3 * H + j);
      const vec tanh_c = tanh(row.in(c + j)), dh = row.in(dh_out + j) + row.in(dh_next + j);
      const vec dc = row.in(carry_next + j) + dh * o * (1.f - tanh_c * tanh_c);
      row.out(d_gates + j, dc * g * i * (1.f - i));
      row.out(d_gates + H + j, c_prev ? dc * row.in(c_prev + j) * f * (1.f - f) : vec{});
      row.out(d_gates + 2 * H + j, dc * i * (1.f - g * g));
      row.out(d_gates + 3 * H + j, dh * tanh_c * o * (1.f - o));
      row.out(carry + j, dc * f);
    });
  }
};

struct GRU {  // gates r u n and U_n h, which r multiplies; no memory beside h
  static constexpr int INPUT[4] = {0, 1, 2, -1}, STATE[4] = {0, 1, -1, 2};

  template <bool KEEP>
  static void forward(isize H, const float* gates, const float* h_prev, const float*, float* kept, float*, float* h) {
    for_vectors(H, [=](isize j, auto row) {
      const vec r = sigmoid(row.in(gates + j)), u = sigmoid(row.in(gates + H + j));
      const vec from_state = row.in(gates + 3 * H + j);
      const vec n = tanh(row.in(gates + 2 * H + j) + r * from_state);
      const vec before = h_prev ? row.in(h_prev + j) : vec{};
      row.out(h + j, before + u * (n - before));
      if (KEEP) row.out(kept + j, r), row.out(kept + H + j, u), row.out(kept + 2 * H + j, n);
      if (KEEP) row.out(kept + 3 * H + j, from_state);
    });
  }

  // carry: the gradient of h that passes the step by
  static void backward(isize H, const float* gates, const float* h_prev, const float*, const float*,
                       const float* dh_out, const float* dh_next, const float* carry_next, float* carry,
                       float* d_gates) {
    for_vectors(H, [=](isize j, auto row) {
      const vec r = row.in(gates + j), u = row.in(gates + H + j);
      const vec n = row.in(gates + 2 * H + j), from_state = row.in(gates + 3 * H + j);
      const vec dh = row.in(dh_out + j) + row.in(dh_next + j) + row.in(carry_next + j);
      const vec before = h_prev ? row.in(h_prev + j) : vec{}, dn = dh * u * (1.f - n * n);
      row.out(d_gates + j, dn * from_state * r * (1.f - r));
      row.out(d_gates + H + j, dh * (n - before) * u * (1.f - u));
      row.out(d_gates + 2 * H + j, dn);
      row.out(d_gates + 3 * H + j, dn * r);
      row.out(carry + j, dh * (1.f - u));
    });
  }
};

// ------------------------------------------------------------------------------------------------ recurrent layers

// Sequences, longest first, in groups of GROUP.
struct Sequences {
  isize count;
  const isize *offsets, *longest_first;
  bool reverse;

  isize groups() const { return (count + GROUP - 1) / GROUP; }
  isize members(isize group) const { return std::min<isize>(GROUP, count - group * GROUP); }
  isize length(isize group, isize r) const {
    const isize s = longest_first[group * GROUP + r];
    return offsets[s + 1] - offsets[s];
  }
  // The flat row that member r of a group reads at step t.
  isize row(isize group, isize r, isize t) const {
    const isize s = longest_first[group * GROUP + r];
    return reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
  }
};

struct Sizes {
  isize H, D;  // hidden, input
};

template <class Cell>
Panels gate_weights(Sizes size, const float* input_weight, const float* state_weight) {  // (D + H, 4H)
  return Panels(size.D + size.H, 4 * size.H, [=](isize k, isize n) {
    const isize gate = n / size.H, unit = n % size.H;
    const int block = k < size.D ? Cell::INPUT[gate] : Cell::STATE[gate];
    if (block < 0) return 0.f;
    const isize weight_row = block * size.H + unit;
    return k < size.D ? input_weight[weight_row * size.D + k] : state_weight[weight_row * size.H + k - size.D];
  });
}

template <class Cell>
Panels gradient_weights(Sizes size, const float* input_weight, const float* state_weight) {  // (4H, H + D)
  return Panels(4 * size.H, size.H + size.D, [=](isize k, isize n) {
    const isize gate = k / size.H, unit = k % size.H;
    const int block = n < size.H ? Cell::STATE[gate] : Cell::INPUT[gate];
    if (block < 0) return 0.f;
    const isize weight_row = block * size.H + unit;
    return n < size.H ? state_weight[weight_row * size.H + n] : input_weight[weight_row * size.D + n - size.H];
  });
}

// States h of all rows. Row i reads input row `rows[i]` (or i): of x, when there is one, on top of the bias; else of
// `projection`, which is the input's share of the gates. Training keeps gates and c; null pointers keep nothing.
template <class Cell>
void forward(const Sequences& sequences, Sizes size, const float* x, const float* projection, const isize* rows,
             const float* input_weight, const float* state_weight, const float* bias, float* gates, float* c, float* h,
             isize threads) {
  const isize H = size.H;
  if (!x) size.D = 0;
  const Panels weights = gate_weights<Cell>(size, input_weight, state_weight);
  std::vector<float> start(weights.stride);
  for (int gate = 0; gate < 4 && x; ++gate)
    if (Cell::INPUT[gate] >= 0) std::copy_n(bias + Cell::INPUT[gate] * H, H, start.data() + gate * H);

  parallel(sequences.groups(), threads, [&](isize group) {
    std::vector<float> sums(GROUP * weights.stride), memory(2 * GROUP * H), scratch(4 * H);
    const float *input[GROUP] = {}, *h_prev[GROUP] = {}, *c_prev[GROUP] = {};
    isize active = sequences.members(group);
    for (isize t = 0;; ++t) {
      while (active && sequences.length(group, active - 1) <= t) --active;
      if (!active) break;
      for (isize r = 0; r < active; ++r) {
        const isize row = sequences.row(group, r, t), read = rows ? rows[row] : row;
        input[r] = x ? x + read * size.D : nullptr;
        copy(4 * H, x ? start.data() : projection + read * 4 * H, sums.data() + r * weights.stride);
      }
      for (isize r = 0; r < active; ++r)
        if (t + 1 < sequences.length(group, r)) {
          const isize row = sequences.row(group, r, t + 1), read = rows ? rows[row] : row;
          x ? prefetch(size.D, x + read * size.D) : prefetch(4 * H, projection + read * 4 * H);
        }
      multiply(active, input, size.D, h_prev, t ? H : 0, weights, sums.data());
      for (isize r = 0; r < active; ++r) {
        const isize row = sequences.row(group, r, t);
        float* c_now = c ? c + row * H : memory.data() + (t % 2 * GROUP + r) * H;
        const float* sum = sums.data() + r * weights.stride;
        if (gates)
          Cell::template forward<true>(H, sum, h_prev[r], c_prev[r], gates + row * 4 * H, c_now, h + row * H);
        else
          Cell::template forward<false>(H, sum, h_prev[r], c_prev[r], scratch.data(), c_now, h + row * H);
        h_prev[r] = h + row * H, c_prev[r] = c_now;
      }
    }
  });
}

// Gradients: d_weights (4H, D + H + 1 in whole vectors), of the weights of x, of those of h and of the bias; and where
// they are asked for, d_projection (k, 4H), of the gates before their activation, for the rows that have a place >= 0
// in it, and dx (rows, D). Without x, D must be 0; a tensor without rows may be a null pointer, too. With `behind`
// (2, rows, H) nothing else is asked for: the gradients of the state and the memory that each row hands to the next.
template <class Cell>
void backward(const Sequences& sequences, Sizes size, const float* x, const float* input_weight,
              const float* state_weight, const float* gates, const float* c, const float* h, const float* dh,
              float* d_weights, float* d_projection, const isize* places, float* dx, float* behind, isize threads) {
  const isize H = size.H, D = size.D, rows = sequences.offsets[sequences.count];
  const Panels weights = gradient_weights<Cell>({H, dx ? D : 0}, input_weight, state_weight);
  const std::vector<float> zeros(weights.stride);

  const auto work = [&](WeightGradient& gradient, isize part, isize parts) {
    std::vector<float> sums(GROUP * weights.stride), carry(2 * GROUP * H), d_gates(GROUP * 4 * H);
    const float* from[GROUP];
    for (isize r = 0; r < GROUP; ++r) from[r] = d_gates.data() + r * 4 * H;
    for (isize group = part; group < sequences.groups(); group += parts) {
      std::fill(sums.begin(), sums.end(), 0.f);
      std::fill(carry.begin(), carry.end(), 0.f);
      const isize members = sequences.members(group);
      isize active = 0;
      for (isize t = sequences.length(group, 0) - 1; t >= 0; --t) {
        while (active < members && sequences.length(group, active) > t) ++active;
        for (isize r = 0; r < active; ++r) {
          const isize row = sequences.row(group, r, t);
          const isize before = t ? sequences.row(group, r, t - 1) * H : 0;
          float* d = d_gates.data() + r * 4 * H;
          if (behind) {
            copy(H, sums.data() + r * weights.stride, behind + row * H);
            copy(H, carry.data() + ((t + 1) % 2 * GROUP + r) * H, behind + (rows + row) * H);
          }
          Cell::backward(H, gates + row * 4 * H, t ? h + before : nullptr, t ? c + before : nullptr, c + row * H,
                         dh + row * H, sums.data() + r * weights.stride, carry.data() + ((t + 1) % 2 * GROUP + r) * H,
                         carry.data() + (t % 2 * GROUP + r) * H, d);
          if (t) {
            const isize next = sequences.row(group, r, t - 1);
            prefetch(4 * H, gates + next * 4 * H);
            prefetch(H, dh + next * H);
            if (x) prefetch(D, x + next * D);
          }
          if (!behind) gradient.add(d, x ? x + row * D : nullptr, t ? h + before : nullptr);
          if (places && places[row] >= 0) copy(4 * H, d, d_projection + places[row] * 4 * H);
        }
        if (!t && !dx) break;
        multiply(active, from, weights, zeros, sums.data());
        for (isize r = 0; r < active && dx; ++r)
          copy(D, sums.data() + r * weights.stride + H, dx + sequences.row(group, r, t) * D);
      }
    }
  };
  sum_weight_gradients(sequences.groups(), 4 * H, D, H, d_weights, threads, work);
}

// ------------------------------------------------------------------------------------------------------- attention

constexpr isize MANY = 4 * GROUP;  // rows that go through a product together: a panel is read once for all of them
constexpr isize TASK = 2 * MANY;   // rows that a thread takes at a time

// For rows begin .. end - 1 in groups: run(first row, count).
template <class Run>
void in_groups(isize begin, isize end, Run run) {
  for (isize i = begin; i < end; i += MANY) run(i, std::min<isize>(MANY, end - i));
}
template <class Body>
void parallel_rows(isize begin, isize end, isize threads, Body body) {
  parallel((end - begin + TASK - 1) / TASK, threads,
           [&](isize task) { body(begin + task * TASK, std::min(end, begin + (task + 1) * TASK)); });
}

// Softmax of a segment's scores, in place.
void softmax(isize n, float* scores) {
  const float highest = *std::max_element(scores, scores + n);
  float total = 0;
  for (isize t = 0; t < n; ++t) total += scores[t] = exp(scores[t] - highest);
  for (isize t = 0; t < n; ++t) scores[t] /= total;
}

}  // namespace

// ------------------------------------------------------------------------------------------------ the C interface

extern "C" {

// kind: 0 LSTM, 1 GRU. Null pointers: see `forward` and `backward`.
void recurrent_forward(int64_t kind, int64_t sequences, const int64_t* offsets, const int64_t* longest_first,
                       int64_t reverse, int64_t H, int64_t D, const float* x, const float* projection,
                       const int64_t* rows, const float* input_weight, const float* state_weight, const float* bias,
                       float* gates, float* c, float* h, int64_t threads) {
  (kind ? forward<GRU> : forward<LSTM>)({sequences, offsets, longest_first, reverse != 0}, {H, D}, x, projection, rows,
                                        input_weight, state_weight, bias, gates, c, h, threads);
}

void recurrent_backward(int64_t kind, int64_t sequences, const int64_t* offsets, const int64_t* longest_first,
                        int64_t reverse, int64_t H, int64_t D, const float* x, const float* input_weight,
                        const float* state_weight, const float* gates, const float* c, const float* h, const float* dh,
                        float* d_weights, float* d_projection, const int64_t* places, float* dx, float* behind,
                        int64_t threads) {
  (kind ? backward<GRU> : backward<LSTM>)({sequences, offsets, longest_first, reverse != 0}, {H, D}, x, input_weight,
                                          state_weight, gates, c, h, dh, d_weights, d_projection, places, dx, behind,
                                          threads);
}

// LSTM over trees: node i reads projection row inputs[i] in the state of its parent, which is of the level before. The
// parent's share of the gates is computed once for siblings that are neighbours.
void forest_forward(int64_t levels, const int64_t* level_sizes, int64_t H, const int64_t* inputs,
                    const int64_t* parents, const float* projection, const float* state_weight, float* gates, float* c,
                    float* h, int64_t threads) {
  const Panels weights = gate_weights<LSTM>({H, 0}, nullptr, state_weight);
  const std::vector<float> zeros(weights.stride);
  isize end = 0;
  for (isize level = 0; level < levels; ++level) {
    const isize begin = end;
    end += level_sizes[level];
    parallel_rows(begin, end, threads, [&](isize first, isize last) {
      std::vector<float> sums(MANY * weights.stride), total(4 * H);
      const float* h_prev[MANY];
      for (isize node = first; node < last;) {
        isize after = node, families = 0;
        for (; after < last; ++after) {
          if (after == node || parents[after] != parents[after - 1]) {
            if (families == MANY) break;
            h_prev[families++] = h + parents[after] * H;
          }
        }
        for (isize next = after; next < std::min<isize>(after + MANY, last); ++next) {
          prefetch(4 * H, projection + inputs[next] * 4 * H);
          if (level) prefetch(H, h + parents[next] * H), prefetch(H, c + parents[next] * H);
        }
        if (level) multiply(families, h_prev, weights, zeros, sums.data());
        const float* from_parent = sums.data();
        for (isize i = node; i < after; ++i) {
          if (i > node && parents[i] != parents[i - 1]) from_parent += weights.stride;
          const float *input = projection + inputs[i] * 4 * H, *c_prev = level ? c + parents[i] * H : nullptr;
          if (!gates) {
            LSTM::states(H, input, level ? from_parent : nullptr, c_prev, total.data(), c + i * H, h + i * H);
            continue;
          }
          copy(4 * H, input, total.data());
          for (isize j = 0; j < 4 * H && level; ++j) total[j] += from_parent[j];
          LSTM::forward<true>(H, total.data(), nullptr, c_prev, gates + i * 4 * H, c + i * H, h + i * H);
        }
        node = after;
      }
    });
  }
}

// y = x weight^T + bias (n, columns); bias may be null.
void linear(int64_t n, int64_t D, int64_t columns, const float* x, const float* weight, const float* bias, float* y,
            int64_t threads) {
  const Panels weights(D, columns, [=](isize k, isize j) { return weight[j * D + k]; });
  std::vector<float> start(weights.stride);
  if (bias) copy(columns, bias, start.data());
  const bool direct = columns == weights.stride;  // else a row of sums is longer than one of y
  parallel_rows(0, n, threads, [&](isize first, isize last) {
    std::vector<float> sums(MANY * weights.stride);
    const float* rows[MANY];
    in_groups(first, last, [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) rows[r] = x + (begin + r) * D;
      multiply(count, rows, weights, start, direct ? y + begin * columns : sums.data());
      for (isize r = 0; r < count && !direct; ++r)
        copy(columns, sums.data() + r * weights.stride, y + (begin + r) * columns);
    });
  });
}

// u = tanh(h weight^T + bias) (n, A), kept where u is given; scores = u . context.
void attention_scores(int64_t n, int64_t H, int64_t A, const float* h, const float* weight, const float* bias,
                      const float* context, float* u, float* scores, int64_t threads) {
  const Panels weights(H, A, [=](isize k, isize j) { return weight[j * H + k]; });
  std::vector<float> start(weights.stride);
  copy(A, bias, start.data());
  parallel_rows(0, n, threads, [&](isize first, isize last) {
    std::vector<float> sums(MANY * weights.stride);
    const float* rows[MANY];
    in_groups(first, last, [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) rows[r] = h + (begin + r) * H;
      multiply(count, rows, weights, start, sums.data());
      for (isize r = 0; r < count; ++r) {
        const float* sum_r = sums.data() + r * weights.stride;
        vec score = {};
        for_vectors(A, [&](isize j, auto row) {
          const vec u_j = tanh(row.in(sum_r + j));
          if (u) row.out(u + (begin + r) * A + j, u_j);
          score += row.once(u_j * row.in(context + j));
        });
        scores[begin + r] = sum(score);
      }
    });
  });
}

// dh, and d_weights (A, H + 1 in whole vectors): gradients of the weight and, in column H, of the bias.
void attention_scores_backward(int64_t n, int64_t H, int64_t A, const float* h, const float* u, const float* weight,
                               const float* context, const float* d_scores, float* d_weights, float* dh,
                               int64_t threads) {
  const Panels weights(A, H, [=](isize k, isize j) { return weight[k * H + j]; });
  const std::vector<float> zeros(weights.stride);
  sum_weight_gradients(n / TASK, A, 0, H, d_weights, threads, [&](WeightGradient& gradient, isize part, isize parts) {
    const isize share = (n + parts - 1) / parts;
    std::vector<float> sums(MANY * weights.stride), d_inner(MANY * A);  // d_inner: before tanh
    const float* from[MANY];
    for (isize r = 0; r < MANY; ++r) from[r] = d_inner.data() + r * A;
    in_groups(part * share, std::min(n, (part + 1) * share), [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) {
        const isize i = begin + r;
        float* d = d_inner.data() + r * A;
        for_vectors(A, [&](isize j, auto row) {
          const vec u_j = row.in(u + i * A + j);
          row.out(d + j, d_scores[i] * row.in(context + j) * (1.f - u_j * u_j));
        });
        gradient.add(d, nullptr, h + i * H);
      }
      multiply(count, from, weights, zeros, sums.data());
      for (isize r = 0; r < count; ++r) copy(H, sums.data() + r * weights.stride, dh + (begin + r) * H);
    });
  });
}

// pooled[i] = sum over t in offsets[i] .. offsets[i + 1] - 1 of softmax(scores)_t h_t, where t stands for row rows[t]
// when rows are given. The weights are kept where there is room for them.
void attend(int64_t segments, const int64_t* offsets, const int64_t* rows, int64_t H, const float* h,
            const float* scores, float* weights, float* pooled, int64_t threads) {
  parallel_rows(0, segments, threads, [&](isize first, isize last) {
    std::vector<float> scratch;
    for (isize i = first; i < last; ++i) {
      const isize begin = offsets[i], n = offsets[i + 1] - begin;
      if (!n) {
        std::fill_n(pooled + i * H, H, 0.f);
        continue;
      }
      if (!weights) scratch.resize(std::max<isize>(scratch.size(), n));
      float* w = weights ? weights + begin : scratch.data();
      for (isize t = 0; t < n; ++t) w[t] = scores[rows ? rows[begin + t] : begin + t];
      softmax(n, w);
      for_vectors(H, [&](isize j, auto row) {
        vec total = {};
        for (isize t = 0; t < n; ++t) total += w[t] * row.in(h + (rows ? rows[begin + t] : begin + t) * H + j);
        row.out(pooled + i * H + j, total);
      });
    }
  });
}

// d_weights may be null: then only the pooled rows have a gradient.
void attend_backward(int64_t segments, const int64_t* offsets, int64_t H, const float* h, const float* weights,
                     const float* d_pooled, const float* d_weights, float* dh, float* d_scores, int64_t threads) {
  parallel_rows(0, segments, threads, [&](isize first, isize last) {
    for (isize i = first; i < last; ++i) {
      const float* d = d_pooled + i * H;
      float mean = 0;
      for (isize t = offsets[i]; t < offsets[i + 1]; ++t) {
        d_scores[t] = dot(H, d, h + t * H) + (d_weights ? d_weights[t] : 0.f);
        mean += weights[t] * d_scores[t];
        for_vectors(H, [&](isize j, auto row) { row.out(dh + t * H + j, weights[t] * row.in(d + j)); });
      }
      for (isize t = offsets[i]; t < offsets[i + 1]; ++t) d_scores[t] = weights[t] * (d_scores[t] - mean);
    }
  });
}

// dots[i] = a[a_rows[i]] . b[b_rows[i]]
void row_dots(int64_t n, int64_t H, const float* a, const int64_t* a_rows, const float* b, const int64_t* b_rows,
              float* dots, int64_t threads) {
  parallel_rows(0, n, threads, [&](isize first, isize last) {
    for (isize i = first; i < last; ++i) dots[i] = dot(H, a + a_rows[i] * H, b + b_rows[i] * H);
  });
}

// Sentence attention over pairs of shared states (see layers/pairs.py); rows of left and right are A + C long.
void pair_attention(int64_t variants, const int64_t* offsets, const int64_t* forward_nodes,
                    const int64_t* backward_nodes, int64_t A, int64_t C, const float* left, const float* right,
                    const float* context, float* logits, int64_t threads) {
  const isize length = A + C, pairs = offsets[variants];
  parallel_rows(0, variants, threads, [&](isize first, isize last) {
    std::vector<float> w;
    for (isize i = first; i < last; ++i) {
      const isize begin = offsets[i], n = offsets[i + 1] - begin;
      w.resize(std::max<isize>(w.size(), n));
      for (isize t = begin; t < begin + n; ++t) {
        if (t + 2 < pairs)  // the rows are far apart: ask for them early
          for (isize j = 0; j < length; j += 16) {
            __builtin_prefetch(left + forward_nodes[t + 2] * length + j);
            __builtin_prefetch(right + backward_nodes[t + 2] * length + j);
          }
        const float *f = left + forward_nodes[t] * length, *b = right + backward_nodes[t] * length;
        vec score = {};
        for_vectors(A, [&](isize j, auto row) {
          score += row.once(tanh(row.in(f + j) + row.in(b + j)) * row.in(context + j));
        });
        w[t - begin] = sum(score);
      }
      float* out = logits + i * C;
      std::fill_n(out, C, 0.f);
      if (n) softmax(n, w.data());
      for (isize t = 0; t < n; ++t) {
        const float* f = left + forward_nodes[begin + t] * length + A;
        const float* b = right + backward_nodes[begin + t] * length + A;
        for (isize j = 0; j < C; ++j) out[j] += w[t] * (f[j] + b[j]);
      }
    }
  });
}

// How many floats a row of weight gradients of that many columns takes.
int64_t padded_columns(int64_t columns) { return whole_vectors(columns); }

}  // extern "C"
