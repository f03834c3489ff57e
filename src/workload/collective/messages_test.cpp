// Proof by replay: the messages of every algorithm carry every contribution to where it belongs.
#include "workload/collective/messages.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "base/rng.hpp"
#include "workload/collective/algorithm.hpp"
#include "workload/collective/ring_time.hpp"
#include "workload/collective/test_fabric.hpp"

namespace weft::workload {
namespace {

using test::Group;
using Contributions = std::uint32_t;  // bit r: rank r's data are in it

struct Held {
  std::uint32_t blocks;
  std::vector<Contributions> cells;
  Held(std::uint32_t ranks, std::uint32_t block_count)
      : blocks(block_count), cells(std::size_t{ranks} * block_count) {}
  Contributions& at(std::uint32_t rank, std::uint32_t block) {
    return cells[std::size_t{rank} * blocks + block];
  }
};

// What each rank holds at first; and what it must hold at the end (empty: anything).
void set_start(Op op, std::uint32_t n, Held& held) {
  for (std::uint32_t r = 0; r < n; ++r)
    for (std::uint32_t b = 0; b < held.blocks; ++b) {
      bool has = true;
      if (op == Op::all_gather || op == Op::send_recv) has = b % n == r;
      if (op == Op::all_to_all) has = b / n == r;
      if (op == Op::broadcast) has = r == 0;
      if (has) held.at(r, b) = 1u << r;
    }
}

std::optional<Contributions> wanted(Op op, std::uint32_t n, std::uint32_t r, std::uint32_t b) {
  const Contributions all = (1u << n) - 1;
  switch (op) {
    case Op::all_reduce:
      return all;
    case Op::all_gather:
      return 1u << (b % n);
    case Op::reduce_scatter:
      return b % n == r ? std::optional(all) : std::nullopt;
    case Op::broadcast:
      return 1u;
    case Op::all_to_all:
      return b % n == r && b / n != r ? std::optional(1u << (b / n)) : std::nullopt;
    case Op::send_recv:
      return (b + 1) % n == r ? std::optional(1u << b) : std::nullopt;
  }
  return {};
}

// Runs the messages with random durations and starts: data are read when a message starts and
// take effect when it ends, so a missing dependency shows as a missing or doubled contribution.
class Replay {
 public:
  Replay(const MessageList& list, Op op, std::uint32_t n, std::uint64_t seed, MessageIndex skip)
      : list_(list),
        op_(op),
        n_(n),
        rng_(seed),
        held_(n, list.block_count()),
        input_(n, list.block_count()),
        skip_(skip),
        waits_(list.messages().size(), 0),
        dependants_(waits_.size()),
        carried_(waits_.size()),
        queue_(n) {
    set_start(op, n, held_);
    input_ = held_;
    for (MessageIndex m = 0; m < waits_.size(); ++m) {
      const Message& message = list.messages()[m];
      for (const MessageIndex a : list.after(message)) {
        ordered_ = ordered_ && a < m;
        dependants_[a].push_back(m);
      }
      waits_[m] = message.after.count + 1;  // the one more is the sender's start
      queue_[message.from_rank].push_back(m);
    }
  }

  // "" when the result is right.
  std::string run() {
    for (std::uint32_t r = 0; r < n_; ++r) {
      now_ = rng_.below(4) == 0 ? 20 * rng_.uniform() : 0;
      for (const MessageIndex m : queue_[r]) release(m);
    }
    while (!events_.empty()) {
      const auto [time, m] = events_.top();
      events_.pop();
      now_ = time;
      end(m);
    }
    return verdict();
  }

 private:
  struct Event {
    double time;
    MessageIndex message;
    bool operator<(const Event& other) const {
      return std::tie(time, message) > std::tie(other.time, other.message);
    }
  };

  void release(MessageIndex m) {
    if (--waits_[m] == 0) start(m);
  }
  void start(MessageIndex m) {
    const Message& message = list_.messages()[m];
    if (message.forwards != no_message) {
      carried_[m] = carried_[message.forwards];
    } else {
      Held& source = message.action == Message::Action::reduce_input ? input_ : held_;
      for (const std::uint32_t b : list_.blocks(message))
        carried_[m].push_back(source.at(message.from_rank, b));
    }
    events_.push({now_ + 0.1 + rng_.uniform() + (rng_.below(8) == 0 ? 5 : 0), m});
  }
  void end(MessageIndex m) {
    const Message& message = list_.messages()[m];
    if (m != skip_) apply(message, carried_[m]);
    for (const MessageIndex d : dependants_[m]) release(d);
    ++ended_;
  }
  void apply(const Message& message, const std::vector<Contributions>& data) {
    if (message.action == Message::Action::hold) return;
    const auto blocks = list_.blocks(message);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Contributions& cell = held_.at(message.to_rank, blocks[i]);
      if (message.action == Message::Action::copy) {
        cell = data[i];
      } else {
        doubled_ = doubled_ || (cell & data[i]) != 0;
        cell |= data[i];
      }
    }
  }
  std::string verdict() {
    if (!ordered_) return "a message stands before what it waits for";
    if (ended_ != waits_.size()) return "messages that never start";
    if (doubled_) return "a contribution is added twice";
    for (std::uint32_t r = 0; r < n_; ++r)
      for (std::uint32_t b = 0; b < held_.blocks; ++b)
        if (const auto want = wanted(op_, n_, r, b); want && *want != held_.at(r, b))
          return "a contribution is missing";
    return "";
  }

  const MessageList& list_;
  Op op_;
  std::uint32_t n_;
  Rng rng_;
  Held held_, input_;
  MessageIndex skip_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::vector<MessageIndex>> dependants_;
  std::vector<std::vector<Contributions>> carried_;
  std::vector<std::vector<MessageIndex>> queue_;
  std::priority_queue<Event> events_;
  double now_ = 0;
  std::size_t ended_ = 0;
  bool ordered_ = true, doubled_ = false;
};

std::string replay(const MessageList& list, const Request& request, std::uint64_t seed,
                   MessageIndex skip = no_message) {
  const auto n = static_cast<std::uint32_t>(request.ranks.size());
  return Replay(list, request.op, n, seed, skip).run();
}

using Loads = std::map<std::pair<NodeId, NodeId>, double>;

Loads loads(const MessageList& list) {
  Loads out;
  for (const Message& m : list.messages()) out[{m.from, m.to}] += m.bytes;
  return out;
}

Loads loads(const Traffic& traffic) {
  Loads out;
  const auto add = [&](const Edge& e) { out[{e.from, e.to}] += e.bytes; };
  for (const Stage& stage : traffic.stages) {
    for (const Chain& chain : stage.chains) std::ranges::for_each(chain.edges, add);
    std::ranges::for_each(stage.flows, add);
    for (const Exchange& x : stage.exchanges)
      x.for_each_message([&](NodeId from, NodeId to, double bytes) { add({from, to, bytes}); });
  }
  return out;
}

bool same(const Loads& a, const Loads& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::abs(x.second - y.second) <= 1e-9 * y.second;
  });
}

constexpr Op all_ops[] = {Op::all_reduce, Op::all_gather, Op::reduce_scatter,
                          Op::broadcast,  Op::all_to_all, Op::send_recv};

void prove(const Group& group, const Algorithm& algorithm, Op op, std::uint32_t channels) {
  const auto n = static_cast<std::uint32_t>(group.ranks.size());
  const Request request{.op = op,
                        .algorithm = std::string(algorithm.name),
                        .ranks = group.ranks,
                        .bytes = 1 << 20,
                        .channels = channels,
                        .window = 1 + n / 3,
                        .matrix = {}};
  const auto list = expand_messages(group.fabric, request, 3);
  const auto traffic = build_traffic(group.fabric, request);
  REQUIRE(list.has_value() == traffic.has_value());
  if (!list) {
    CHECK(algorithm.name == "hierarchical");
    CHECK_FALSE(group.even_hosts);
    return;
  }
  CHECK(same(loads(*list), loads(*traffic)));
  for (std::uint64_t seed = 0; seed < 3; ++seed) CHECK(replay(*list, request, seed) == "");
}

TEST_CASE("every algorithm completes every operation it offers, for 2 to 17 ranks on any layout") {
  for (std::uint32_t n = 2; n <= 17; ++n)
    for (const Group& group : test::groups(n))
      for (const Algorithm* algorithm : algorithms())
        for (const Op op : all_ops) {
          if (!algorithm->ops.has(op) || algorithm->expand == nullptr) continue;
          CAPTURE(n);
          CAPTURE(group.name);
          CAPTURE(algorithm->name);
          CAPTURE(to_text(op));
          for (const std::uint32_t channels : {0u, 3u}) prove(group, *algorithm, op, channels);
        }
}

TEST_CASE("the replay notices any message that is lost") {
  const Fabric fabric = test::make_fabric({.hosts = 3, .gpus = 2, .nics = 2});
  for (const char* name : {"ring", "tree", "halving_doubling", "direct", "hierarchical", "flat"}) {
    CAPTURE(name);
    const Request request{
        .algorithm = name, .ranks = test::first_gpus(fabric, 6), .bytes = 6000, .matrix = {}};
    const auto list = expand_messages(fabric, request, 2);
    REQUIRE(list.has_value());
    for (MessageIndex m = 0; m < list->messages().size(); ++m) {
      if (list->messages()[m].action == Message::Action::hold) continue;
      REQUIRE(replay(*list, request, 1, m) != "");
    }
  }
}

TEST_CASE("a ring's messages, each as early as it may start, end when ring_time says") {
  const Fabric fabric = test::make_fabric({.hosts = 1, .gpus = 11, .nics = 1});
  Rng rng(5);
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter}) {
    const Request request{
        .op = op, .algorithm = "ring", .ranks = test::first_gpus(fabric, 11), .matrix = {}};
    const auto list = expand_messages(fabric, request);
    REQUIRE(list.has_value());
    std::vector<double> tau(11), start(11), end(list->messages().size());
    for (double& t : tau) t = rng.uniform();
    for (double& s : start) s = 3 * rng.uniform();
    for (MessageIndex m = 0; m < end.size(); ++m) {
      const Message& message = list->messages()[m];
      end[m] = start[message.from_rank];
      for (const MessageIndex a : list->after(message)) end[m] = std::max(end[m], end[a]);
      end[m] += tau[message.from_rank];
    }
    const std::uint32_t steps = op == Op::all_reduce ? 20 : 10;
    CHECK(*std::ranges::max_element(end) == doctest::Approx(ring_time(tau, start, steps)));
  }
}

TEST_CASE("variable sizes: every pair gets its own, and empty ones still meet") {
  const Fabric fabric = test::make_fabric({.hosts = 3, .gpus = 1, .nics = 1});
  const Request request{.op = Op::all_to_all,
                        .ranks = test::first_gpus(fabric, 3),
                        .window = 2,
                        .matrix = {9, 1, 0, 2, 9, 3, 0, 4, 9}};
  const auto list = expand_messages(fabric, request);
  REQUIRE(list.has_value());
  Loads with_bytes = loads(*list);
  std::erase_if(with_bytes, [](const auto& pair) { return pair.second == 0; });
  CHECK(with_bytes == Loads{{{request.ranks[0], request.ranks[1]}, 1},
                            {{request.ranks[1], request.ranks[0]}, 2},
                            {{request.ranks[1], request.ranks[2]}, 3},
                            {{request.ranks[2], request.ranks[1]}, 4}});
}

TEST_CASE("what cannot be expanded says why") {
  const Fabric fabric = test::make_fabric({.hosts = 257, .gpus = 1, .nics = 1});
  Request request{.algorithm = "ring", .ranks = test::first_gpus(fabric, 257), .matrix = {}};
  CHECK(expand_messages(fabric, request).error().code == Errc::infeasible);
  request.ranks.pop_back();
  CHECK(expand_messages(fabric, request).has_value());
  request.channels = 64;
  CHECK(expand_messages(fabric, request).error().code == Errc::infeasible);
  request.algorithm = "sharp";
  CHECK(expand_messages(fabric, request).error().code == Errc::unsupported);
  CHECK(expand_messages(fabric, request, 0).error().code == Errc::value);
}

}  // namespace
}  // namespace weft::workload
