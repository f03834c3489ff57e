#include "adapt/lab/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace weft::adapt::lab {

Status for_each_parallel(std::size_t count, unsigned threads,
                         const std::function<Status(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  Status out;
  const auto loop = [&] {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      Status status = work(i);
      if (status) continue;
      failed = true;
      const std::scoped_lock lock(mutex);
      if (out) out = std::move(status);
    }
  };
  std::vector<std::jthread> workers;
  try {
    for (std::size_t i = 0; i < std::min<std::size_t>(threads, count); ++i)
      workers.emplace_back(loop);
  } catch (const std::system_error& error) {
    if (workers.empty())
      return fail(Errc::io, {}, std::string("starting a thread: ") + error.what());
  }
  workers.clear();  // joins
  return out;
}

}  // namespace weft::adapt::lab
