// The threads around the controller: who hangs holds up nobody else.
#include "serve/controller_thread.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "controller_kit.hpp"

namespace weft::controller_test {
namespace {

using namespace std::chrono_literals;

class RealClock final : public port::Clock {
 public:
  port::Instant now() override { return {ns(std::chrono::steady_clock::now())}; }
  Timestamp wall() override { return {ns(std::chrono::system_clock::now())}; }

 private:
  template <class Point>
  static std::int64_t ns(Point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  }
};

// Somebody who is told, and takes his time until he may go on.
class Receiver final : public port::Notifier {
 public:
  Status notify(const port::Notice& notice) override {
    while (is_hanging) std::this_thread::sleep_for(1ms);
    if (notice.event == "case_opened") ++opened;
    return {};
  }
  std::atomic<bool> is_hanging = false;
  std::atomic<int> opened = 0;
};

bool is_one_soon(const std::atomic<int>& count) {
  for (int i = 0; i < 3'000 && count == 0; ++i) std::this_thread::sleep_for(10ms);
  return count == 1;
}

TEST_CASE("a receiver of notices that hangs holds up no other") {
  World world;
  RealClock clock;
  world.now = clock.wall().ns;
  world.policy = policy_of("{defaults: {forecast: none}, timing: {early: 10 ms}}");
  Life life(world);
  serve::Bus bus;
  Receiver hanging, ready;
  hanging.is_hanging = true;
  serve::ControllerThread loop(
      life.controller(), clock, bus,
      {.actuator = nullptr, .forecast = {}, .snapshot = {}, .notifiers = {&hanging, &ready}},
      [](Timestamp, Timestamp, std::uint64_t) { return Result<std::string>("{}"); });
  const std::int64_t now = clock.wall().ns;
  const auto receipt = loop.accept("record",
                                   {Life::record("a", now, "rtsw:1->ctsw:0", "link_down"),
                                    Life::record("b", now, "ctsw:0->rtsw:1", "link_down")},
                                   "");
  REQUIRE(receipt.has_value());
  CHECK(is_one_soon(ready.opened));
  CHECK(hanging.opened == 0);
  hanging.is_hanging = false;
  CHECK(is_one_soon(hanging.opened));
  CHECK(ready.opened == 1);
}

}  // namespace
}  // namespace weft::controller_test
