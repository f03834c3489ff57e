// Independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace weft {
inline namespace base {

// Calls work(i) once for every i below `count`, on at most `threads` threads, of which the caller's
// is one. Pieces begin in order of i; `work` must not throw.
template <class Work>
void parallel_for(std::size_t count, std::uint32_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min<std::size_t>(threads, count); ++t) others.emplace_back(take);
  take();
}

// As many as --threads says, or as there are processors where it says nothing (0).
inline std::uint32_t threads_or_all(std::uint32_t threads) {
  return threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace base
}  // namespace weft
