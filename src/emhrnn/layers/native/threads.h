// Work for several threads, cut so that results do not depend on their number.

#pragma once

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "products.h"

namespace {

// body(task) for every task. Threads live for one call: nothing is left behind that a fork or an exit could trip over.
template <class Body>
void parallel(isize tasks, isize threads, Body body) {
  std::atomic<isize> next{0};
  const auto work = [&] {
    for (isize task; (task = next.fetch_add(1)) < tasks;) body(task);
  };
  std::vector<std::thread> others;
  others.reserve(std::max<isize>(0, std::min(threads, tasks) - 1));
  try {
    for (isize i = 1; i < std::min(threads, tasks); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {  // the system gives no more threads: those that there are do it all
  }
  work();
  for (std::thread& other : others) other.join();
}

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

}  // namespace
