// A service that is killed again and again under load: nothing that it acknowledged is lost, and
// nothing is done twice.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "adapt/sqlite/store.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "service_kit.hpp"

using namespace weft;
using namespace weft::operate_test;
using nlohmann::json;

namespace {

// One cable after another fails and comes back while the service lives and dies; returns the ids
// acknowledged.
std::set<std::string> rounds(Service& service, int kills, Rng& rng) {
  constexpr auto each = 1200ms;
  const auto begin = std::chrono::steady_clock::now();
  std::set<std::string> acknowledged;
  std::uint64_t number = 0;
  for (int round = 0; round < kills; ++round) {
    service.start();
    std::atomic<bool> is_over = false;
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + rng.below(400)));
      is_over = true;
      CHECK(service.stop(SIGKILL) == -1);
    });
    for (; !is_over; ++number) {
      const std::int64_t k = (std::chrono::steady_clock::now() - begin) / each;
      const int end = static_cast<int>(number % 2);
      const std::string down = fmt::format("d{}", number), up = fmt::format("u{}", number);
      std::string lines = line(down, cable(k, end), "link_down");
      if (k >= 2) lines += line(up, cable(k - 2, end), "link_up");
      if (!service.post(lines)) continue;
      acknowledged.insert(down);
      if (k >= 2) acknowledged.insert(up);
    }
    killer.join();
  }
  return acknowledged;
}

void check(Service& service, const std::set<std::string>& acknowledged) {
  auto store = adapt::sqlite::open_sqlite(service.scratch().path() + "/weft.db");
  REQUIRE_MESSAGE(store.has_value(), (store ? "" : store.error().text()));
  const auto events = (*store)->events(1, SIZE_MAX);
  REQUIRE(events.has_value());
  std::map<std::string, int> kept;
  for (const port::StoredEvent& event : *events) ++kept[json::parse(event.line)["id"]];
  for (const std::string& id : acknowledged) CHECK_MESSAGE(kept.contains(id), id);
  for (const auto& [id, count] : kept) CHECK_MESSAGE(count == 1, id);
  const auto audit = (*store)->audit(1, "", SIZE_MAX);
  REQUIRE(audit.has_value());
  std::set<std::string> intents;
  for (const port::AuditEntry& entry : *audit)
    if (entry.action == "order")
      if (const json detail = json::parse(entry.detail); detail.contains("action"))
        intents.insert(detail["action"]);
  std::map<std::string, int> effects;
  const std::string done = service.scratch().read("effects");
  for (const std::string_view word : split(done, '\n'))
    if (!word.empty()) ++effects[std::string(split(word, ' ').back())];
  for (const auto& [action, count] : effects) {
    CHECK_MESSAGE(count == 1, action);                // no action twice
    CHECK_MESSAGE(intents.contains(action), action);  // and none that was not written down before
  }
  CHECK(effects.size() >= 2);
  MESSAGE(acknowledged.size() << " records acknowledged, " << kept.size() << " kept, "
                              << effects.size() << " actions done");
}

}  // namespace

TEST_CASE("killed a few times under load") {
  Rng rng(doctest::getContextOptions()->rand_seed);
  Service service;
  check(service, rounds(service, 25, rng));
}

TEST_CASE("killed a hundred times under load" * doctest::skip(true)) {
  Rng rng(doctest::getContextOptions()->rand_seed + 1);
  Service service;
  check(service, rounds(service, 100, rng));
}
