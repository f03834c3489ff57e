#include "serve/bus.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

Announcement row(int i) { return {"case", fmt::format("{}", i)}; }

TEST_CASE("listeners hear what is announced after they came, in order") {
  Bus bus;
  bus.publish(row(1));
  Bus::Listener listener(bus);
  bus.publish(row(2));
  bus.publish(row(3));
  const auto heard = listener.wait(0ms, 100);
  REQUIRE(heard.rows.size() == 2);
  CHECK(heard.rows[0]->data == "2");
  CHECK(heard.rows[1]->data == "3");
  CHECK(heard.lost == 0);
  CHECK(listener.wait(0ms, 100).rows.empty());
}

TEST_CASE("a batch is bounded, and what is left comes with the next one") {
  Bus bus;
  Bus::Listener listener(bus);
  for (int i = 0; i < 5; ++i) bus.publish(row(i));
  CHECK(listener.wait(0ms, 3).rows.size() == 3);
  CHECK(listener.wait(0ms, 3).rows.size() == 2);
}

TEST_CASE("whoever falls behind the ring is told how much it lost") {
  Bus bus({.rows = 4});
  Bus::Listener listener(bus);
  for (int i = 0; i < 10; ++i) bus.publish(row(i));
  const auto heard = listener.wait(0ms, 100);
  CHECK(heard.lost == 6);
  REQUIRE(heard.rows.size() == 4);
  CHECK(heard.rows[0]->data == "6");
  CHECK(listener.wait(0ms, 100).lost == 0);
}

TEST_CASE("the ring is bounded in bytes too, and keeps the last row whatever its size") {
  Bus bus({.rows = 100, .bytes = 1000});
  Bus::Listener listener(bus);
  for (int i = 0; i < 5; ++i) bus.publish({"case", std::string(400, 'x')});
  CHECK(listener.wait(0ms, 100).rows.size() == 2);
  bus.publish({"case", std::string(5000, 'x')});
  const auto heard = listener.wait(0ms, 100);
  REQUIRE(heard.rows.size() == 1);
  CHECK(heard.rows[0]->data.size() == 5000);
}

TEST_CASE("waiting ends with a row, with a wake and with patience") {
  Bus bus;
  Bus::Listener listener(bus);
  CHECK(listener.wait(5ms, 1).rows.empty());
  std::thread speaker([&] { bus.publish(row(1)); });
  CHECK(listener.wait(10s, 1).rows.size() == 1);
  speaker.join();
  std::thread waker([&] { bus.wake(); });
  CHECK(listener.wait(10s, 1).rows.empty());
  waker.join();
}

TEST_CASE("many speak and many listen: each row is heard once or counted as lost") {
  constexpr int speaker_count = 3;
  constexpr int row_count = 2000;
  Bus bus({.rows = 64});
  std::atomic<bool> is_over = false;
  std::vector<std::uint64_t> sums(4);
  std::vector<std::thread> listeners;
  std::vector<Bus::Listener> ears;
  for (std::size_t i = 0; i < sums.size(); ++i) ears.emplace_back(bus);
  for (std::size_t i = 0; i < sums.size(); ++i)
    listeners.emplace_back([&, i] {
      for (bool was_over = false;;) {
        const auto heard = ears[i].wait(1ms, 7);
        sums[i] += heard.lost + heard.rows.size();
        if (was_over && heard.rows.empty()) return;
        was_over = is_over;
      }
    });
  std::vector<std::thread> speakers;
  for (int s = 0; s < speaker_count; ++s)
    speakers.emplace_back([&] {
      for (int i = 0; i < row_count; ++i) bus.publish(row(i));
    });
  for (std::thread& speaker : speakers) speaker.join();
  is_over = true;
  for (std::thread& listener : listeners) listener.join();
  for (const std::uint64_t sum : sums) CHECK(sum == speaker_count * row_count);
}

}  // namespace
}  // namespace weft::serve
