// For tests of this room: a small world with hands that may fail or lie, and a store that survives.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/repair/repair.hpp"

namespace weft::operate::repair::testing {

using model::testing::make_fabric;

//   ctsw:0 ... ctsw:3      4 racks of 2 hosts with 2 NICs
//      | \ / |
//   rtsw:0 ... rtsw:3
inline model::Fabric small_zone() {
  return make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
}
inline constexpr std::string_view cable = "rtsw:0--ctsw:0";

inline constexpr double minute = 60;  // in seconds

inline Policy policy_with(std::string_view yaml) {
  auto config = parse_yaml(yaml, "policy.yaml");
  REQUIRE(config.has_value());
  auto policy = read_policy(*config);
  REQUIRE_MESSAGE(policy.has_value(), (policy ? "" : policy.error().text()));
  return *std::move(policy);
}

inline Entity part(const model::Fabric& fabric, std::string_view name) {
  const auto found = model::find_entity(fabric, {name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

inline Timestamp at(double seconds) {
  return {static_cast<std::int64_t>(seconds * 1e9) + 1'700'000'000 * ns_per_s};
}

inline model::Case make_case(const model::Fabric& fabric, std::string id, CauseKind kind,
                             std::string_view root, Timestamp opened) {
  model::Case c{.id = std::move(id), .kind = kind, .confidence = 0.95, .opened = opened};
  if (!root.empty()) c.root = part(fabric, root);
  c.members.push_back({opened, 1, model::Relation::itself});
  return c;
}

inline model::Case closed(model::Case c, Timestamp t) {
  c.closed = t;
  return c;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// How the world's hands behave.
enum class Hand : std::uint8_t {
  works,
  fails,          // io error, no effect
  works_unheard,  // an effect, and an io error
  lies,           // success, no effect
  refuses,        // Errc::infeasible
  slow,           // "draining" for a while
};

struct World {
  explicit World(const model::Fabric& f) : fabric(f) {}

  const model::Fabric& fabric;
  std::map<std::string, port::Service> service;
  std::set<std::string> faulty;      // test traffic is lost on them
  std::deque<std::uint64_t> losses;  // of the next checks, whatever is faulty
  Hand hand = Hand::works;
  double rate_share = 1;  // that all checks measure
  bool is_blind = false;  // states and checks cannot be had
  bool has_no_check = false;
  Forecast forecast{.jobs = 1};
  std::map<std::string, int> effects;  // by action id
  std::vector<std::string> acts;       // "drain rtsw:0--ctsw:0", effective ones
  std::vector<std::string> notices;

  port::Service state(const std::string& name) const {
    const auto found = service.find(name);
    return found == service.end() ? port::Service::in_service : found->second;
  }
  void effect(const port::Action& action) {
    const port::Service to =
        action.kind == port::ActionKind::drain ? port::Service::drained : port::Service::in_service;
    if (state(action.entity) == to) return;
    service[action.entity] = to;
    ++effects[action.id];
    acts.push_back(fmt::format("{} {}", port::to_text(action.kind), action.entity));
  }
  Outcome perform(const Order& order) {
    Outcome out{.order = order.id};
    const auto error = [](Errc code) { return Error{code, {}, "the world says no", {}, {}}; };
    switch (order.kind) {
      case OrderKind::act:
        if (hand == Hand::works || hand == Hand::works_unheard) effect(order.action);
        if (hand == Hand::slow) service[order.action.entity] = port::Service::draining;
        if (hand == Hand::fails || hand == Hand::works_unheard) out.error = error(Errc::io);
        if (hand == Hand::refuses) out.error = error(Errc::infeasible);
        break;
      case OrderKind::look:
        out.service = state(order.entity);
        if (is_blind) out.error = error(Errc::io);
        break;
      case OrderKind::check:
        out.check = {order.packets, faulty.contains(order.entity) ? order.packets / 10 + 1 : 0};
        if (!losses.empty()) {
          out.check.lost = losses.front();
          losses.pop_front();
        }
        out.check.rate_share = rate_share;
        if (is_blind) out.error = error(Errc::io);
        if (has_no_check) out.error = error(Errc::unsupported);
        break;
      case OrderKind::forecast:
        out.forecast = forecast;
        break;
      case OrderKind::snapshot:
        break;
      case OrderKind::notify:
        notices.push_back(order.notice.event);
        break;
    }
    return out;
  }
};

// What survives a crash.
struct Memory {
  std::map<std::string, port::Document> documents;
  std::vector<port::AuditEntry> audit;

  void commit(const port::Commit& commit) {
    for (const port::Document& d : commit.documents) documents[d.id] = d;
    audit.insert(audit.end(), commit.audit.begin(), commit.audit.end());
  }
  std::vector<port::Document> all() const {
    std::vector<port::Document> out;
    for (const auto& [id, document] : documents) out.push_back(document);
    return out;
  }
  std::size_t count(std::string_view action, std::string_view part = "") const {
    return static_cast<std::size_t>(std::ranges::count_if(audit, [&](const port::AuditEntry& e) {
      return e.action == action && contains(e.detail, part);
    }));
  }
};

// The caller: commits, performs, reports.
struct Bench {
  Bench(const model::Fabric& f, Policy p) : fabric(f), policy(std::move(p)), world(f) { start(); }

  const model::Fabric& fabric;
  Policy policy;
  World world;
  Memory memory;
  std::unique_ptr<Repair> repair;
  std::deque<Order> queue;
  Timestamp now = at(0);

  void start() {
    queue.clear();
    repair = std::make_unique<Repair>(fabric, policy);
    const auto documents = memory.all();
    const Status done = repair->restore(documents, now);
    REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  }
  void step() {
    Step s = repair->step(now);
    memory.commit(s.commit);
    for (Order& o : s.orders) queue.push_back(std::move(o));
    // All that was due is done: a caller that waits for what is due next does not spin.
    const auto due = repair->next_due();
    if (due && *due <= now) FAIL("a step left something to do");
  }
  bool perform_one() {
    if (queue.empty()) return false;
    const Order order = std::move(queue.front());
    queue.pop_front();
    Outcome out =
        repair->may_act(order, now)
            ? world.perform(order)
            : Outcome{.order = order.id, .error = Error{Errc::infeasible, {}, "stopped", {}, {}}};
    repair->outcome(out, now);
    return true;
  }
  // All that happens without time passing.
  void settle() {
    for (int i = 0; i < 1000; ++i) {
      step();
      if (queue.empty()) return;
      while (perform_one()) {
      }
    }
    FAIL("it never comes to rest");
  }
  // Time passes; what is due happens when it is due.
  void run_until(Timestamp end) {
    settle();
    for (int i = 0; i < 100'000; ++i) {
      const auto due = repair->next_due();
      if (!due || *due > end) break;
      now = std::max(now, *due);
      settle();
    }
    now = end;
    settle();
  }
  void run_for(double seconds) { run_until({now.ns + static_cast<std::int64_t>(seconds * 1e9)}); }
  void see(const model::Case& c) {
    repair->see(c, now);
    settle();
  }
  const Ticket& ticket(std::string_view id) const {
    const Ticket* found = repair->find(id);
    REQUIRE(found != nullptr);
    return *found;
  }
  Stage stage(std::string_view id) const { return ticket(id).stage; }
};

}  // namespace weft::operate::repair::testing

// For doctest's messages, under the name that it looks for.
namespace weft::operate::repair {
// NOLINTBEGIN(readability-identifier-naming)
inline doctest::String toString(Stage stage) { return std::string(to_text(stage)).c_str(); }
inline doctest::String toString(Resolution r) { return std::string(to_text(r)).c_str(); }
// NOLINTEND(readability-identifier-naming)
}  // namespace weft::operate::repair
