// Proof by replay: the messages that the packet engine runs carry every contribution to where it
// belongs. What a message holds stands here, written from the definition of each algorithm; who
// sends it to whom, in how many parts and after what comes from the lowering alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "engine/packet_jobs/lowering.hpp"
#include "workload/collective/algorithm.hpp"
#include "workload/collective/test_fabric.hpp"

namespace weft::engine::packet {
namespace {

using workload::Chain;
using workload::Edge;
using workload::Exchange;
using workload::Op;
using workload::Stage;
using workload::test::Group;
using Rank = std::uint32_t;
using Contributions = std::uint32_t;  // bit r: rank r's data are in it
using Blocks = std::vector<std::uint32_t>;

// `input`: sums what the sender had at the start. `hold`: kept apart, unread, for the next edge.
enum class Action : std::uint8_t { reduce, input, copy, hold };

struct Label {
  Action action;
  Blocks blocks;
};

// An edge of a stage as the lowering takes them up, and where it stands.
struct Item {
  Edge edge;
  enum class In : std::uint8_t { turns, stream, flow, exchange } in;
  std::uint32_t stage, chain, index;
  bool lends = false;  // its sender stands in the ring a second time, and passes on
};

// A collective, its messages, and which item and part each of them is.
struct Subject {
  const model::Fabric& fabric;
  workload::Request request;
  workload::Traffic traffic;
  std::map<NodeId, Rank> ranks;
  MessageSet set;
  std::vector<Item> items;
  struct Of {
    std::uint32_t item = UINT32_MAX, part = 0;  // no item: a join or a grant
  };
  std::vector<Of> of;                // by message
  std::vector<std::uint32_t> parts;  // by item

  std::uint32_t size() const { return static_cast<std::uint32_t>(request.ranks.size()); }
  Rank rank(NodeId node) const { return ranks.at(node); }
};

std::vector<Item> items_of(const workload::Traffic& traffic, std::uint32_t s) {
  const Stage& stage = traffic.stages[s];
  std::vector<Item> items;
  const auto add = [&](const Edge& edge, Item::In in, std::size_t chain, std::size_t index) {
    items.push_back(
        {edge, in, s, static_cast<std::uint32_t>(chain), static_cast<std::uint32_t>(index)});
  };
  for (std::size_t c = 0; c < stage.chains.size(); ++c) {
    const Chain& chain = stage.chains[c];
    std::set<NodeId> seen;
    for (std::size_t e = 0; e < chain.edges.size(); ++e) {
      add(chain.edges[e], chain.levels.empty() ? Item::In::turns : Item::In::stream, c, e);
      items.back().lends = chain.levels.empty() && !seen.insert(chain.edges[e].from).second;
    }
  }
  for (const Edge& flow : stage.flows) add(flow, Item::In::flow, 0, 0);
  for (const Exchange& exchange : stage.exchanges)
    exchange.for_each_message([&](NodeId from, NodeId to, double bytes) {
      add({from, to, bytes}, Item::In::exchange, 0, 0);
    });
  return items;
}

// Every edge has a connection of its own, in order; its messages are its parts, in order.
void identify(const LoweredJob& job, Subject& subject) {
  subject.of.resize(subject.set.size());
  for (std::uint32_t s = 0; s < job.stages; ++s) {
    std::map<std::uint32_t, std::vector<MessageId>> messages;  // by connection
    for (MessageId m = job.first[s]; m < job.first[s + 1]; ++m) {
      const auto& message = subject.set.messages[m];
      const auto& connection = subject.set.connections[message.connection];
      if (connection.src != connection.dst && message.bytes != grant_bytes)
        messages[message.connection].push_back(m);
    }
    const std::vector<Item> items = items_of(subject.traffic, s);
    REQUIRE(messages.size() == items.size());
    auto item = items.begin();
    bool same = true;
    for (const auto& [connection, list] : messages) {
      const auto& ends = subject.set.connections[connection];
      same = same && ends.src == item->edge.from && ends.dst == item->edge.to;
      for (std::uint32_t part = 0; part < list.size(); ++part)
        subject.of[list[part]] = {static_cast<std::uint32_t>(subject.items.size()), part};
      subject.items.push_back(*item++);
      subject.parts.push_back(static_cast<std::uint32_t>(list.size()));
    }
    REQUIRE(same);
  }
}

std::optional<Subject> make_subject(const Group& group, const workload::Request& request) {
  auto traffic = workload::build_traffic(group.fabric, request);
  if (!traffic) return std::nullopt;
  Subject out{group.fabric, request, *std::move(traffic), {}, {}, {}, {}, {}};
  for (Rank r = 0; r < out.size(); ++r) out.ranks[request.ranks[r]] = r;
  auto router = route::Router::create(group.fabric, {}, 1);
  REQUIRE(router.has_value());
  MessageGraph graph;
  const auto job =
      lower_collective({.traffic = out.traffic, .ranks = request.ranks}, *router, graph);
  REQUIRE(job.has_value());
  out.set = graph.take();
  identify(*job, out);
  return out;
}

// --- What messages hold -------------------------------------------------------------------------

// The members of a ring in turns, and the place and kind of each edge. Where the ring comes to a
// node again, that node lends its NIC: the edge into it is `hold`, the edge out passes on.
struct Ring {
  std::vector<Rank> order;
  std::vector<std::uint32_t> place;  // of the sender whose data cross edge e
  std::vector<bool> lends;

  Ring(const Subject& subject, const Chain& chain) {
    std::set<NodeId> seen;
    for (const Edge& edge : chain.edges) {
      lends.push_back(!seen.insert(edge.from).second);
      if (!lends.back()) order.push_back(subject.rank(edge.from));
      place.push_back(static_cast<std::uint32_t>(order.size() - 1));
    }
  }
};

// Place of a rank among those of its host, by GPU.
std::uint32_t place_in_host(const Subject& subject, Rank rank) {
  const NodeId gpu = subject.request.ranks[rank];
  return static_cast<std::uint32_t>(std::ranges::count_if(subject.request.ranks, [&](NodeId other) {
    return subject.fabric.host_of(other) == subject.fabric.host_of(gpu) && other < gpu;
  }));
}

// Hierarchical: along a host a member answers for all ranks of its rail, along a rail for itself.
Blocks owned(const Subject& subject, const Ring& ring, Rank owner) {
  if (subject.traffic.algorithm != "hierarchical") return {owner};
  const auto host = [&](Rank r) { return subject.fabric.host_of(subject.request.ranks[r]); };
  if (host(ring.order.front()) != host(ring.order.back())) return {owner};
  Blocks blocks;
  for (Rank r = 0; r < subject.size(); ++r)
    if (place_in_host(subject, r) == place_in_host(subject, owner)) blocks.push_back(r);
  return blocks;
}

// Turn k of a ring of n moves the data of the one k + 1 places back: n - 1 turns of sums that end
// at their owner, then n - 1 turns in which they go round.
Label turn_label(const Subject& subject, const Item& item, std::uint32_t part) {
  const Chain& chain = subject.traffic.stages[item.stage].chains[item.chain];
  const Ring ring(subject, chain);
  const auto n = static_cast<std::uint32_t>(ring.order.size());
  const bool lent = item.index + 1 < ring.lends.size() && ring.lends[item.index + 1];
  const bool gathers = subject.request.op == Op::all_gather ||
                       (subject.request.op == Op::all_reduce && chain.steps == n - 1 &&
                        item.stage + 1 == subject.traffic.stages.size());
  const std::uint32_t k = part + (gathers ? n - 1 : 0);
  Blocks blocks = owned(subject, ring, ring.order[(ring.place[item.index] + 2 * n - k - 1) % n]);
  const bool channels = subject.traffic.algorithm == "ring";
  for (std::uint32_t& block : blocks) block += channels ? item.chain * subject.size() : 0;
  if (lent) return {Action::hold, blocks};
  return {k < n - 1 ? Action::reduce : Action::copy, blocks};
}

Label stream_label(const Subject& subject, const Item& item, std::uint32_t part,
                   std::uint32_t parts) {
  const Chain& chain = subject.traffic.stages[item.stage].chains[item.chain];
  const bool up =
      subject.request.op == Op::all_reduce && chain.levels[item.index] < workload::root_level;
  return {up ? Action::reduce : Action::copy, {item.chain * parts + part}};
}

// Rabenseifner: rank v of the ranks that work gives its partner the blocks on the partner's side of
// the bit in which they differ, and then hands back its own.
Label halving_label(const Subject& subject, const Item& item, Rank from, Rank to) {
  const std::uint32_t n = subject.size(), active = std::bit_floor(n), folded = n - active;
  Blocks blocks;
  const std::string& name = subject.traffic.stages[item.stage].name;
  const bool folds = name.starts_with("fold");
  const auto number = [&](Rank r) { return r < 2 * folded ? r / 2 : r - folded; };
  const std::uint32_t v = number(from), apart = v ^ number(to);
  const bool first_half = item.stage < subject.traffic.stages.size() / 2;
  const std::uint32_t side = (first_half ? number(to) : v) & apart;
  for (std::uint32_t b = 0; b < active; ++b)
    if (folds || ((b & apart) == side && ((b ^ v) & (apart - 1)) == 0)) blocks.push_back(b);
  return {first_half ? Action::reduce : Action::copy, blocks};
}

// Of an all-gather, whose parts `from` sends in a round over distance d; a reduce-scatter is one
// played backwards.
Label gather_label(const Subject& subject, const Item& item, Rank from, Rank to) {
  const std::uint32_t n = subject.size();
  const bool gathers = subject.request.op == Op::all_gather;
  const auto rounds = static_cast<std::uint32_t>(subject.traffic.stages.size());
  const std::uint32_t round = gathers ? item.stage : rounds - 1 - item.stage;
  const Rank sender = gathers ? from : to;
  Blocks blocks;
  if (subject.traffic.algorithm == "pat") {
    // Every second distance behind; none that would come round to its owner.
    const std::uint32_t d = 1u << (rounds - 1 - round);
    for (std::uint32_t behind = 0; behind + d < n; behind += 2 * d)
      blocks.push_back((sender + n - behind) % n);
  } else {
    // All so far: of the aligned group, or of the ranks ahead, as many as are still wanted.
    const std::uint32_t d = 1u << round;
    const Rank first = std::has_single_bit(n) ? sender / d * d : sender;
    for (std::uint32_t i = 0; i < std::min(d, n - d); ++i) blocks.push_back((first + i) % n);
  }
  return {gathers ? Action::copy : Action::reduce, blocks};
}

// Every pair at once, or one to the next.
Label pair_label(const Subject& subject, const Item& item, Rank from, Rank to) {
  const Op op = subject.request.op;
  if (op == Op::all_to_all) return {Action::copy, {from * subject.size() + to}};
  if (op == Op::broadcast) return {Action::copy, {0}};
  if (op == Op::all_gather || op == Op::send_recv) return {Action::copy, {from}};
  if (subject.traffic.algorithm == "flat") return {Action::input, {0}};
  return item.stage == 0 ? Label{Action::reduce, {to}} : Label{Action::copy, {from}};
}

Label label_of(const Subject& subject, std::uint32_t item_index, std::uint32_t part) {
  const Item& item = subject.items[item_index];
  if (item.in == Item::In::turns) return turn_label(subject, item, part);
  if (item.in == Item::In::stream)
    return stream_label(subject, item, part, subject.parts[item_index]);
  const Rank from = subject.rank(item.edge.from), to = subject.rank(item.edge.to);
  const std::string& algorithm = subject.traffic.algorithm;
  if (algorithm == "halving_doubling") return halving_label(subject, item, from, to);
  if (algorithm == "recursive_doubling" || algorithm == "pat")
    return gather_label(subject, item, from, to);
  const bool pairs = algorithm == "direct" || algorithm == "flat" || algorithm == "pairwise";
  REQUIRE_MESSAGE(pairs, "write down what the messages of ", algorithm, " hold");
  return pair_label(subject, item, from, to);
}

// --- Replay -------------------------------------------------------------------------------------

// What a rank holds at first, and what it must hold at the end (nothing: anything).
bool has_at_start(Op op, std::uint32_t n, Rank r, std::uint32_t b) {
  if (op == Op::all_gather || op == Op::send_recv) return b % n == r;
  if (op == Op::all_to_all) return b / n == r;
  return op != Op::broadcast || r == 0;
}

std::optional<Contributions> wanted(Op op, std::uint32_t n, Rank r, std::uint32_t b) {
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

// Runs the messages with random durations and late ranks. Data are read when a message may start,
// and take effect when it arrives, so that a missing dependency shows as a missing or doubled
// contribution. Messages of a connection arrive in order.
class Replay {
 public:
  Replay(const Subject& subject, std::uint64_t seed, std::optional<MessageId> lost = {})
      : subject_(subject), rng_(seed), lost_(lost), arrived_at_(subject.set.connections.size(), 0) {
    for (const Subject::Of& of : subject.of)
      labels_.push_back(of.item == UINT32_MAX ? Label{Action::copy, {}}
                                              : label_of(subject, of.item, of.part));
    for (const Label& label : labels_)
      for (const std::uint32_t b : label.blocks) blocks_ = std::max(blocks_, b + 1);
    const std::uint32_t n = subject.size();
    held_.resize(std::size_t{n} * blocks_);
    for (Rank r = 0; r < n; ++r)
      for (std::uint32_t b = 0; b < blocks_; ++b)
        if (has_at_start(subject.request.op, n, r, b)) cell(held_, r, b) = 1u << r;
    input_ = held_;
  }

  // "" when the result is right.
  std::string run() {
    const auto count = static_cast<MessageId>(subject_.set.size());
    waits_.resize(count);
    carried_.resize(count);
    for (MessageId m = 0; m < count; ++m) {
      waits_[m] = subject_.set.messages[m].waits;
      if (waits_[m] == 0) start(m, rng_.below(4) == 0 ? 20 * rng_.uniform() : 0);
    }
    std::size_t ended = 0;
    while (!events_.empty()) {
      const auto [at, m, acknowledged] = events_.top();
      events_.pop();
      if (!acknowledged) {
        apply(m);
        events_.push({at + (is_join(m) ? 0 : rng_.uniform()), m, true});
      } else {
        ++ended;
      }
      for (const Dependent dependent : subject_.set.dependents_of(m))
        if ((dependent.when != 0) == acknowledged && --waits_[dependent.message] == 0)
          start(dependent.message, at);
    }
    return ended == count ? verdict() : "messages that never start";
  }

 private:
  struct Event {
    double at;
    MessageId message;
    bool acknowledged;
    bool operator<(const Event& other) const {
      return std::tie(at, message, acknowledged) >
             std::tie(other.at, other.message, other.acknowledged);
    }
  };

  Contributions& cell(std::vector<Contributions>& of, Rank rank, std::uint32_t block) const {
    return of[std::size_t{rank} * blocks_ + block];
  }
  const Item& item(MessageId m) const { return subject_.items[subject_.of[m].item]; }
  bool is_join(MessageId m) const { return subject_.set.messages[m].bytes == 0; }

  void start(MessageId m, double now) {
    if (subject_.of[m].item != UINT32_MAX) read(m);
    double& last = arrived_at_[subject_.set.messages[m].connection];
    const double takes =
        is_join(m) ? 0 : 0.1 + rng_.uniform() + (rng_.below(8) == 0 ? 5 * rng_.uniform() : 0);
    const double at = is_join(m) ? now : std::max(last, now) + takes;
    last = std::max(last, at);
    events_.push({at, m, false});
  }
  // A node that lends its NIC sends on what the edge before brought in this turn.
  void read(MessageId m) {
    if (item(m).lends) {
      carried_[m] = holding_[{subject_.of[m].item - 1, subject_.of[m].part}];
      carried_[m].resize(labels_[m].blocks.size());
      return;
    }
    auto& source = labels_[m].action == Action::input ? input_ : held_;
    for (const std::uint32_t b : labels_[m].blocks)
      carried_[m].push_back(cell(source, subject_.rank(item(m).edge.from), b));
  }
  void apply(MessageId m) {
    if (subject_.of[m].item == UINT32_MAX || m == lost_) return;
    const auto& [action, blocks] = labels_[m];
    if (action == Action::hold) {
      holding_[{subject_.of[m].item, subject_.of[m].part}] = carried_[m];
      return;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Contributions& to = cell(held_, subject_.rank(item(m).edge.to), blocks[i]);
      doubled_ = doubled_ || (action != Action::copy && (to & carried_[m][i]) != 0);
      to = action == Action::copy ? carried_[m][i] : to | carried_[m][i];
    }
  }
  std::string verdict() {
    if (doubled_) return "a contribution is added twice";
    const std::uint32_t n = subject_.size();
    for (Rank r = 0; r < n; ++r)
      for (std::uint32_t b = 0; b < blocks_; ++b)
        if (const auto want = wanted(subject_.request.op, n, r, b);
            want && *want != cell(held_, r, b))
          return "a contribution is missing";
    return "";
  }

  const Subject& subject_;
  Rng rng_;
  std::optional<MessageId> lost_;
  std::uint32_t blocks_ = 0;
  std::vector<Label> labels_;  // by message
  std::vector<Contributions> held_, input_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Contributions>> holding_;
  std::vector<double> arrived_at_;  // by connection: the last message
  std::vector<std::uint32_t> waits_;
  std::vector<std::vector<Contributions>> carried_;
  std::priority_queue<Event> events_;
  bool doubled_ = false;
};

bool switches_work(const workload::Traffic& traffic, const model::Fabric& fabric) {
  for (const Stage& stage : traffic.stages)
    for (const Chain& chain : stage.chains)
      for (const Edge& edge : chain.edges)
        if (fabric.kind(edge.from) != model::NodeKind::gpu) return true;
  return false;
}

// Three pieces of a stream on every channel and tree.
constexpr double proof_bytes = 48 * 131'072;

// Whether there was something to prove.
bool prove(const Group& group, const workload::Request& request) {
  const auto traffic = workload::build_traffic(group.fabric, request);
  if (traffic && switches_work(*traffic, group.fabric)) return false;
  const auto subject = make_subject(group, request);
  if (!subject) return false;
  for (std::uint64_t seed = 0; seed < 3; ++seed) CHECK(Replay(*subject, seed).run() == "");
  return true;
}

constexpr Op all_ops[] = {Op::all_reduce, Op::all_gather, Op::reduce_scatter,
                          Op::broadcast,  Op::all_to_all, Op::send_recv};

TEST_CASE("every algorithm completes every operation it offers, for 2 to 17 ranks on any layout") {
  std::set<std::string> proved;
  constexpr std::uint64_t most = std::min<std::uint64_t>(17, 1 + test_effort(64));
  for (std::uint32_t n = 2; n <= most; ++n)
    for (const Group& group : workload::test::groups(n))
      for (const workload::Algorithm* algorithm : workload::algorithms())
        for (const Op op : all_ops) {
          if (!algorithm->ops.has(op)) continue;
          const std::string name(algorithm->name);
          CAPTURE(n);
          CAPTURE(group.name);
          CAPTURE(name);
          CAPTURE(workload::to_text(op));
          for (const std::uint32_t channels : {0u, 3u})
            for (const std::uint32_t window : {1u, 3u}) {
              if (window != 1 && op != Op::all_to_all) continue;
              if (prove(group, {.op = op,
                                .algorithm = name,
                                .ranks = group.ranks,
                                .bytes = proof_bytes,
                                .channels = channels,
                                .window = window,
                                .matrix = {}}))
                proved.insert(name + ' ' + std::string(workload::to_text(op)));
            }
        }
  std::set<std::string> offered;
  for (const workload::Algorithm* algorithm : workload::algorithms())
    for (const Op op : all_ops)
      if (algorithm->ops.has(op) && !algorithm->name.starts_with("nvls") &&
          algorithm->name != "sharp")
        offered.insert(std::string(algorithm->name) + ' ' + std::string(workload::to_text(op)));
  CHECK(proved == offered);
}

TEST_CASE("the replay notices any message that is lost") {
  const Group group{
      "three a host", workload::test::make_fabric({.hosts = 2, .gpus = 3, .nics = 2}), {}};
  const auto ranks = workload::test::first_gpus(group.fabric, 6);
  for (const char* name : {"ring", "tree", "halving_doubling", "direct", "hierarchical", "flat"}) {
    CAPTURE(name);
    const auto subject = make_subject(
        group, {.algorithm = name, .ranks = ranks, .bytes = proof_bytes, .matrix = {}});
    REQUIRE(subject.has_value());
    for (MessageId m = 0; m < subject->of.size(); ++m) {
      if (subject->of[m].item == UINT32_MAX) continue;
      REQUIRE(Replay(*subject, 1, m).run() != "");
    }
  }
}

TEST_CASE("pairs without bytes send nothing, and all others their own") {
  const Group group{"three", workload::test::make_fabric({.hosts = 3, .gpus = 1, .nics = 1}), {}};
  const auto ranks = workload::test::first_gpus(group.fabric, 3);
  const auto subject = make_subject(
      group,
      {.op = Op::all_to_all, .ranks = ranks, .window = 2, .matrix = {9, 1, 0, 2, 9, 3, 0, 4, 9}});
  REQUIRE(subject.has_value());
  std::map<std::pair<Rank, Rank>, std::uint64_t> sent;
  for (MessageId m = 0; m < subject->of.size(); ++m) {
    const auto& connection = subject->set.connections[subject->set.messages[m].connection];
    if (subject->of[m].item != UINT32_MAX)
      sent[{subject->rank(connection.src), subject->rank(connection.dst)}] +=
          subject->set.messages[m].bytes;
  }
  using Pair = std::pair<Rank, Rank>;
  CHECK(sent == std::map<Pair, std::uint64_t>{
                    {Pair{0, 1}, 1}, {Pair{1, 0}, 2}, {Pair{1, 2}, 3}, {Pair{2, 1}, 4}});
}

}  // namespace
}  // namespace weft::engine::packet
