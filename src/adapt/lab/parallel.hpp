// Plain loops on a few threads.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.hpp"

namespace weft::adapt::lab {

// Runs work(0) ... work(count - 1), in this order but side by side, on threads of their own. Stops
// at the first failure (by time) and returns it. A thread that cannot be made is a failure only
// where none could.
Status for_each_parallel(std::size_t count, unsigned threads,
                         const std::function<Status(std::size_t)>& work);

}  // namespace weft::adapt::lab
