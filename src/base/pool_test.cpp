#include "base/pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace weft;

namespace {

struct Thing {
  std::atomic<int> users{0};
};

}  // namespace

TEST_CASE("a pool lends each thing to one thread at a time, and makes no more than its size") {
  std::atomic<int> made{0};
  std::atomic<int> shared{0};
  Pool<Thing> pool(3, [&]() -> Result<std::unique_ptr<Thing>> {
    ++made;
    return std::make_unique<Thing>();
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto loan = pool.borrow();
        if (!loan || ++(*loan)->users != 1) ++shared;
        if (loan) --(*loan)->users;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(made >= 1);
  CHECK(made <= 3);
  CHECK(shared == 0);
}

TEST_CASE("a thing that could not be made takes no room") {
  int tries = 0;
  Pool<Thing> pool(1, [&]() -> Result<std::unique_ptr<Thing>> {
    if (++tries < 3) return fail(Errc::io, {}, "no thing today");
    return std::make_unique<Thing>();
  });
  CHECK(pool.borrow().error().what == "no thing today");
  CHECK_FALSE(pool.borrow().has_value());
  CHECK(pool.borrow().has_value());
  CHECK(pool.borrow().has_value());  // the same one, given back
  CHECK(tries == 3);
}
