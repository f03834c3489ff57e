#include "engine/packet_jobs/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/check.hpp"
#include "engine/jobs/stage_cost.hpp"

namespace weft::engine::packet {
namespace {

using When = MessageEvent::When;
using workload::Chain;
using workload::Edge;
using workload::Exchange;
using workload::Stage;

// Part `index` of `count` parts that add up to `bytes`.
std::uint64_t part_bytes(double bytes, std::uint64_t index, std::uint64_t count) {
  const auto whole = static_cast<std::uint64_t>(std::llround(bytes));
  return std::max<std::uint64_t>(1, whole / count + (index < whole % count ? 1 : 0));
}

// Bytes before `parts` parts of the whole, where these are no whole number.
std::uint64_t bytes_before(double bytes, double parts, std::uint64_t count) {
  return static_cast<std::uint64_t>(
      std::llround(std::round(bytes) * parts / static_cast<double>(count)));
}

// Pieces of no fewer than one byte.
std::uint32_t pieces_of(const Chain& chain) {
  const auto [least, most] = std::ranges::minmax(chain.edges, {}, &Edge::bytes);
  const double wanted = std::min(std::ceil(most.bytes / stream_piece_bytes), least.bytes);
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, double{stream_pieces_max}));
}

// Edges of a stream that begin at one node and wait for the same edges.
struct Passing {
  NodeId from;
  std::vector<std::uint32_t> edges, after;
};

// In an order in which each stands behind all it waits for.
std::vector<Passing> passings_of(const Chain& chain) {
  WEFT_CHECK(chain.levels.size() == chain.edges.size());
  std::vector<std::uint32_t> order(chain.edges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::vector<std::uint32_t> by_end = order;
  const auto end_of = [&](std::uint32_t e) { return chain.edges[e].to; };
  std::ranges::stable_sort(by_end, {}, end_of);
  std::ranges::stable_sort(
      order, {}, [&](std::uint32_t e) { return std::pair(chain.levels[e], chain.edges[e].from); });
  std::vector<Passing> out;
  std::uint32_t level = 0;
  for (const std::uint32_t e : order) {
    const NodeId from = chain.edges[e].from;
    if (out.empty() || out.back().from != from || chain.levels[e] != level) {
      level = chain.levels[e];
      Passing& passing = out.emplace_back(Passing{.from = from, .edges = {}, .after = {}});
      for (const std::uint32_t before : std::ranges::equal_range(by_end, from, {}, end_of))
        if (chain.levels[before] < level) passing.after.push_back(before);
    }
    out.back().edges.push_back(e);
  }
  return out;
}

}  // namespace

class CollectiveLowering::Impl {
 public:
  Impl(const workload::Traffic& traffic, std::span<const NodeId> ranks, Duration step_overhead,
       const std::optional<workload::CallCost>& cost, route::Router& router, MessageGraph& graph,
       bool is_part)
      : router_(router),
        traffic_(traffic),
        nodes_(ranks),
        step_overhead_(step_overhead),
        width_(width_of(router)),
        delay_ns_(static_cast<std::uint32_t>((step_overhead.ps + 500) / 1000)),
        graph_(graph),
        ranks_(ranks.size()) {
    for (std::uint32_t r = 0; r < ranks.size(); ++r) rank_of_.emplace(ranks[r], r);
    const auto has_turns = [](const Stage& stage) {
      return std::ranges::any_of(stage.chains,
                                 [](const Chain& chain) { return chain.levels.empty(); });
    };
    end_together_ = is_part && std::ranges::any_of(traffic.stages, has_turns);
    if (!cost) return;
    const auto shares = engine::stage_shares(traffic, router.fabric());
    for (std::size_t s = 0; s < shares.size(); ++s) {
      const double path_s = engine::StageLatency(traffic.stages[s], router).beyond_s(*cost, {});
      paces_.push_back(
          from_seconds(cost->lead_s * shares[s].lead + path_s + cost->bytes_s * shares[s].bytes));
    }
  }

  std::vector<MessageId> append(std::span<const MessageEvent> after, std::uint32_t number,
                                std::vector<MessageId>& parts) {
    WEFT_CHECK(after.size() == ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].passed.assign(1, after[r]);
    number_ = number;
    next_base_ = 0;
    for (std::size_t s = 0; s < traffic_.stages.size(); ++s) {
      parts.push_back(graph_.size());
      enter();
      if (!paces_.empty()) keep_pace(paces_[s]);
      lower(traffic_.stages[s]);
    }
    parts.push_back(graph_.size());
    enter();
    std::vector<MessageId> ends;
    for (const RankState& state : ranks_) ends.push_back(state.passed.front().message);
    if (end_together_) wait_for_last(ends);
    return ends;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  // What a rank waits for before its next stage: all of `passed`, and all that it receives or, if
  // it receives nothing, all that it sends.
  struct RankState {
    std::vector<MessageEvent> passed, received, sent;
  };

  void enter();
  void wait_for_last(std::vector<MessageId>& ends);
  void keep_pace(Duration pace);
  void lower(const Stage& stage);
  void lower_turns(const Chain& chain);
  void lower_stream(const Chain& chain);
  void lower_flow(const Edge& edge);
  void lower_exchange(const Exchange& exchange);
  void open_round(const Exchange& exchange, std::uint32_t ended);

  std::uint32_t connections(NodeId from, NodeId to, std::uint32_t count) {
    if (next_base_ == bases_.size()) {
      bases_.push_back(graph_.add_connections(from, to, count));
      if (const std::uint32_t ns = omitted_ns(from, to, router_); ns > 0)
        omitted_ns_[bases_.back()] = ns;
      if (count > 1 && count == width_.parts)
        if (const std::span<const double> shares = router_.qp_shares(from, to); !shares.empty())
          shares_[bases_.back()].assign(shares.begin(), shares.end());
    }
    return bases_[next_base_++];
  }
  std::vector<std::uint32_t> connections(const Chain& chain) {
    std::vector<std::uint32_t> out;
    out.reserve(chain.edges.size());
    for (const Edge& edge : chain.edges)
      out.push_back(connections(edge.from, edge.to, width_.connections));
    return out;
  }

  // The first of the messages that are part `index` of `count` of an edge's bytes; `turn` numbers
  // whole messages.
  MessageId send(std::uint32_t base, double bytes, std::uint64_t index, std::uint64_t count,
                 std::uint64_t turn) {
    const auto weighed = shares_.find(base);
    const std::span<const double> shares =
        weighed == shares_.end() ? std::span<const double>() : weighed->second;
    const auto omitted = omitted_ns_.find(base);
    const std::uint32_t delay_ns = delay_ns_ + (omitted == omitted_ns_.end() ? 0 : omitted->second);
    return add_split({base, bytes, index, count, turn, delay_ns, shares}, width_, graph_);
  }
  void append(MessageId first, When when, std::vector<MessageEvent>& out) const {
    for (std::uint32_t p = 0; p < width_.parts; ++p) out.push_back({first + p, when});
  }
  // Whoever ends a stage, or sends on, may have to wait for this.
  void note(const Edge& edge, MessageId first) {
    if (const std::uint32_t to = rank(edge.to); to != none)
      append(first, When::arrived, ranks_[to].received);
    if (const std::uint32_t from = rank(edge.from); from != none)
      append(first, When::acknowledged, ranks_[from].sent);
  }
  // Messages of a connection arrive in order: the last on each stands for all.
  bool is_last(std::uint64_t index, std::uint64_t count) const {
    return index + width_.connections / width_.parts >= count;
  }
  std::uint32_t rank(NodeId node) const {
    const auto found = rank_of_.find(node);
    return found == rank_of_.end() ? none : found->second;
  }
  void append_entry(NodeId node, std::vector<MessageEvent>& out) const {
    if (const std::uint32_t r = rank(node); r != none) out.push_back(ranks_[r].passed.front());
  }

  route::Router& router_;
  const workload::Traffic& traffic_;
  std::span<const NodeId> nodes_;
  Duration step_overhead_;
  MessageWidth width_;
  std::uint32_t delay_ns_;
  MessageGraph& graph_;
  std::unordered_map<NodeId, std::uint32_t> rank_of_;  // looked up only
  std::vector<RankState> ranks_;
  std::uint32_t number_ = 0;
  std::vector<Duration> paces_;       // of the stages, where the library has a cost
  Duration pause_;                    // before the next stage
  std::vector<std::uint32_t> bases_;  // connections, in the order in which an iteration asks
  std::size_t next_base_ = 0;
  bool end_together_ = false;
  std::vector<std::uint32_t> told_, tells_;  // by rank but the first: connections to it, and back
  std::unordered_map<std::uint32_t, std::vector<double>> shares_;  // by base; looked up only
  std::unordered_map<std::uint32_t, std::uint32_t> omitted_ns_;    // likewise, above 0
  std::vector<MessageEvent> events_;                               // scratch
  // Of the exchange at hand: what opened each rank's last round, and its last messages to send,
  // by round modulo window and rank.
  std::vector<MessageEvent> opened_;
  std::vector<MessageId> sent_;
};

void CollectiveLowering::Impl::enter() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    RankState& state = ranks_[r];
    const auto& last = state.received.empty() ? state.sent : state.received;
    state.passed.insert(state.passed.end(), last.begin(), last.end());
    const MessageId entry = graph_.add_join(nodes_[r], state.passed, pause_);
    state.passed.assign(1, {entry});
    state.received.clear();
    state.sent.clear();
  }
  pause_ = {};
}

// No rank leaves the stage at hand sooner than `pace` after it entered.
void CollectiveLowering::Impl::keep_pace(Duration pace) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const MessageEvent entry = ranks_[r].passed.front();
    ranks_[r].passed.push_back({graph_.add_join(nodes_[r], {&entry, 1}, pace)});
  }
}

void CollectiveLowering::Impl::lower(const Stage& stage) {
  if (stage.chains.empty() && stage.flows.empty() && stage.exchanges.empty())
    pause_ = step_overhead_ * (stage.latency_steps + stage.inner_steps);
  for (const Chain& chain : stage.chains)
    chain.levels.empty() ? lower_turns(chain) : lower_stream(chain);
  for (const Edge& flow : stage.flows) lower_flow(flow);
  for (const Exchange& exchange : stage.exchanges) lower_exchange(exchange);
}

// Each end becomes one that comes when the first rank has heard of all.
void CollectiveLowering::Impl::wait_for_last(std::vector<MessageId>& ends) {
  for (std::size_t r = told_.size() + 1; r < ends.size(); ++r) {
    told_.push_back(graph_.add_connections(nodes_[r], nodes_[0], 1));
    tells_.push_back(graph_.add_connections(nodes_[0], nodes_[r], 1));
  }
  std::vector<MessageEvent> heard{{ends[0]}};
  for (std::size_t r = 1; r < ends.size(); ++r) {
    heard.push_back({graph_.add({told_[r - 1], grant_bytes})});
    graph_.wait(heard.back().message, {ends[r]});
  }
  ends[0] = graph_.add_join(nodes_[0], heard);
  for (std::size_t r = 1; r < ends.size(); ++r) {
    const MessageEvent word{graph_.add({tells_[r - 1], grant_bytes})};
    graph_.wait(word.message, {ends[0]});
    ends[r] = graph_.add_join(nodes_[r], {&word, 1});
  }
}

// A rank that comes late has data for it before it begins; after as many turns as there are edges
// what it passes on depends on what it sent.
void CollectiveLowering::Impl::lower_turns(const Chain& chain) {
  const std::size_t n = chain.edges.size();
  const std::vector<std::uint32_t> bases = connections(chain);
  std::vector<bool> seen(ranks_.size(), false), lends(n, false);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t from = rank(chain.edges[i].from);
    WEFT_CHECK(from != none);
    lends[i] = seen[from];
    seen[from] = true;
  }
  std::vector<MessageId> before(n, 0), now(n, 0);
  for (std::uint32_t turn = 0; turn < chain.steps; ++turn) {
    for (std::size_t i = 0; i < n; ++i) {
      const Edge& edge = chain.edges[i];
      const std::size_t previous = (i + n - 1) % n;
      events_.clear();
      if (turn < n) append_entry(edge.from, events_);
      if (lends[i]) append(now[previous], When::arrived, events_);
      if (!lends[i] && turn > 0) append(before[previous], When::arrived, events_);
      now[i] = send(bases[i], edge.bytes, turn, chain.steps,
                    std::uint64_t{number_} * chain.steps + turn);
      graph_.wait_all(now[i], width_.parts, events_, edge.from);
      if (is_last(turn, chain.steps)) note(edge, now[i]);
    }
    std::swap(before, now);
  }
}

void CollectiveLowering::Impl::lower_stream(const Chain& chain) {
  const std::vector<std::uint32_t> bases = connections(chain);
  const std::vector<Passing> passings = passings_of(chain);
  const std::uint32_t pieces = pieces_of(chain);
  std::vector<MessageId> now(chain.edges.size(), 0);
  for (std::uint32_t piece = 0; piece < pieces; ++piece)
    for (const Passing& passing : passings) {
      events_.clear();
      append_entry(passing.from, events_);
      for (const std::uint32_t e : passing.after) append(now[e], When::arrived, events_);
      WEFT_CHECK(!events_.empty());  // switches pass on, and begin nothing
      const MessageId first = graph_.size();
      for (const std::uint32_t e : passing.edges) {
        now[e] = send(bases[e], chain.edges[e].bytes, piece, pieces,
                      std::uint64_t{number_} * pieces + piece);
        if (is_last(piece, pieces)) note(chain.edges[e], now[e]);
      }
      graph_.wait_all(first, graph_.size() - first, events_, passing.from);
    }
}

void CollectiveLowering::Impl::lower_flow(const Edge& edge) {
  const std::uint32_t base = connections(edge.from, edge.to, width_.connections);
  const MessageId first = send(base, edge.bytes, 0, 1, number_);
  events_.clear();
  append_entry(edge.from, events_);
  graph_.wait_all(first, width_.parts, events_, edge.from);
  note(edge, first);
}

// Every rank opens one more round when `ended`, its lowest, is over both ways.
void CollectiveLowering::Impl::open_round(const Exchange& exchange, std::uint32_t ended) {
  const std::uint32_t n = exchange.size();
  const std::size_t window = sent_.size() / n;
  const MessageId* sent = &sent_[ended % window * n];
  for (std::uint32_t r = 0; r < n; ++r) {
    events_.assign(1, opened_[r]);
    const MessageId to = sent[r], from = sent[exchange.sender(r, ended)];
    if (to != none) append(to, When::acknowledged, events_);
    if (from != none) append(from, When::arrived, events_);
    opened_[r] = {graph_.add_join(exchange.ranks[r], events_)};
  }
}

void CollectiveLowering::Impl::lower_exchange(const Exchange& exchange) {
  const std::uint32_t n = exchange.size(), end = exchange.end_round;
  const std::uint32_t window = std::clamp(exchange.window, 1u, exchange.round_count());
  opened_.clear();
  for (const NodeId node : exchange.ranks) append_entry(node, opened_);
  sent_.assign(std::size_t{n} * window, none);
  for (std::uint32_t round = exchange.first_round; round < end; ++round) {
    const bool granted = round >= exchange.first_round + window;
    if (granted) open_round(exchange, round - window);
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t peer = exchange.receiver(r, round);
      const Edge edge{exchange.ranks[r], exchange.ranks[peer], exchange.bytes(r, peer)};
      MessageId& first = sent_[std::size_t{round % window} * n + r];
      first = none;
      if (edge.bytes <= 0) continue;
      events_.assign(1, opened_[r]);
      if (granted) {
        const MessageId grant = graph_.add({connections(edge.to, edge.from, 1), grant_bytes});
        graph_.wait(grant, opened_[peer]);
        events_.push_back({grant});
      }
      const std::uint32_t base = connections(edge.from, edge.to, width_.connections);
      first = send(base, edge.bytes, 0, 1, number_);
      graph_.wait_all(first, width_.parts, events_, edge.from);
      if (round + window >= end) note(edge, first);
    }
  }
  for (std::uint32_t r = 0; r < n; ++r)
    if (window < exchange.round_count())
      ranks_[rank(exchange.ranks[r])].passed.push_back(opened_[r]);
}

MessageWidth width_of(const route::Router& router) {
  const std::uint32_t streams = router.stream_count();
  const bool turns = router.config().message_mode == route::MessageMode::round_robin;
  return {turns ? router.config().qps : streams, streams};
}

std::uint32_t omitted_ns(NodeId from, NodeId to, route::Router& router) {
  constexpr double most_ns = 2e9;  // that still leaves room for a step's overhead
  return static_cast<std::uint32_t>(
      std::llround(std::min(router.omitted_latency_s(from, to) * 1e9, most_ns)));
}

MessageId add_split(const SplitMessage& message, const MessageWidth& width, MessageGraph& graph) {
  const MessageId first = graph.size();
  const bool turns = width.connections != width.parts;
  auto before = static_cast<double>(message.index);
  for (std::uint32_t p = 0; p < width.parts && !message.shares.empty(); ++p) {
    const double after =
        p + 1 == width.parts ? static_cast<double>(message.index + 1) : before + message.shares[p];
    const std::uint64_t bytes = bytes_before(message.bytes, after, message.count) -
                                bytes_before(message.bytes, before, message.count);
    graph.add({message.base + p, std::max<std::uint64_t>(1, bytes), message.delay_ns});
    before = after;
  }
  if (!message.shares.empty()) return first;
  for (std::uint32_t p = 0; p < width.parts; ++p) {
    const auto qp = turns ? static_cast<std::uint32_t>(message.turn % width.connections) : p;
    graph.add(
        {message.base + qp,
         part_bytes(message.bytes, message.index * width.parts + p, message.count * width.parts),
         message.delay_ns});
  }
  return first;
}

double message_count(const workload::Traffic& traffic, std::size_t ranks,
                     const route::Router& router) {
  const double parts = width_of(router).parts;
  const double each = parts + 1;                  // and a join
  double count = 2 * static_cast<double>(ranks);  // starts and ends
  for (const Stage& stage : traffic.stages) {
    count += 2 * static_cast<double>(ranks);  // entries and paces
    for (const Chain& chain : stage.chains) {
      const bool turns = chain.levels.empty();
      const double pieces = turns ? chain.steps : pieces_of(chain);
      count +=
          pieces * static_cast<double>(chain.edges.size()) * (turns && parts < 4 ? parts : each);
    }
    count += static_cast<double>(stage.flows.size()) * parts;
    for (const Exchange& exchange : stage.exchanges) {
      const double messages = 1.0 * exchange.size() * exchange.round_count();
      const bool windowed = exchange.window < exchange.round_count();
      count += messages * (windowed ? each + 1 : parts);
    }
  }
  return count;
}

CollectiveLowering::CollectiveLowering(const workload::Traffic& traffic,
                                       std::span<const NodeId> ranks, Duration step_overhead,
                                       const std::optional<workload::CallCost>& cost,
                                       route::Router& router, MessageGraph& graph, bool is_part)
    : impl_(std::make_unique<Impl>(traffic, ranks, step_overhead, cost, router, graph, is_part)) {}
CollectiveLowering::CollectiveLowering(CollectiveLowering&&) noexcept = default;
CollectiveLowering::~CollectiveLowering() = default;

std::vector<MessageId> CollectiveLowering::append(std::span<const MessageEvent> after,
                                                  std::uint32_t number,
                                                  std::vector<MessageId>& parts) {
  return impl_->append(after, number, parts);
}

Status check_message_count(double messages) {
  if (messages <= packet_messages_max) return {};
  return fail(
      Errc::infeasible, {},
      fmt::format("{:.0f} million messages exceed the limit of the packet engine ({:.0f} million): "
                  "they would need {:.0f} GB of memory",
                  messages / 1e6, packet_messages_max / 1e6, messages * packet_message_bytes / 1e9),
      "use engine: fluid, or fewer ranks, channels, QPs or iterations");
}

Status check_overhead(Duration step_overhead) {
  if (step_overhead.ps / 1000 < std::int64_t{UINT32_MAX}) return {};
  return fail(Errc::value, {}, fmt::format("step_overhead is {} s", step_overhead.seconds()),
              "the packet engine supports up to 4.29 s");
}

Result<LoweredJob> lower_collective(const LoweringRequest& request, route::Router& router,
                                    MessageGraph& graph) {
  WEFT_TRY_STATUS(check_overhead(request.step_overhead));
  CollectiveLowering collective(request.traffic, request.ranks, request.step_overhead, request.cost,
                                router, graph, request.is_part);
  LoweredJob out{.stages = static_cast<std::uint32_t>(request.traffic.stages.size()), .first = {}};
  std::vector<MessageEvent> after;
  for (std::size_t r = 0; r < request.ranks.size(); ++r) {
    const MessageId start = graph.add_join(request.ranks[r], {});
    const Duration late = r < request.late.size() ? request.late[r] : Duration{};
    graph.not_before(start, request.start + late);
    after.push_back({start});
  }
  for (std::uint32_t i = 0; i < request.iterations; ++i) {
    const auto ends = collective.append(after, request.first_iteration + i, out.first);
    for (std::size_t r = 0; r < ends.size(); ++r) after[r] = {ends[r]};
  }
  out.first.push_back(graph.size());
  return out;
}

}  // namespace weft::engine::packet
