#include "engine/fluid/flow_run.hpp"

#include <algorithm>
#include <map>

#include "base/hash.hpp"

namespace weft::engine::fluid {
namespace {

class FlowRun final : Network::Client {
 public:
  FlowRun(const FlowSet& set, Network& network)
      : set_(set),
        network_(network),
        ends_(set.flows.size()),
        streams_left_(set.flows.size(), 0),
        next_sibling_(set.flows.size(), FlowSet::none),
        first_dependent_(set.flows.size(), FlowSet::none),
        message_(set.flows.size(), 0) {
    index_dependents();
    number_messages();
  }

  // Notes where all flows are at a time during the run to come.
  void look_at(double at_s) {
    moments_.resize(set_.flows.size());
    network_.timer(at_s, look_tag);
  }
  std::vector<FlowMoment> take_moments() { return std::move(moments_); }

  std::vector<FlowEnd> run() {
    for (std::uint32_t i = 0; i < set_.flows.size(); ++i)
      if (set_.flows[i].after == FlowSet::none) start_not_before(i);
    network_.run(*this);
    return std::move(ends_);
  }

 private:
  void index_dependents() {
    // Backwards, so that the lists run in file order.
    for (std::uint32_t i = static_cast<std::uint32_t>(set_.flows.size()); i-- > 0;) {
      const std::uint32_t after = set_.flows[i].after;
      if (after == FlowSet::none) continue;
      next_sibling_[i] = first_dependent_[after];
      first_dependent_[after] = i;
    }
  }
  // The k-th flow between the same two NICs is the k-th message of their connection.
  void number_messages() {
    std::map<std::pair<NodeId, NodeId>, std::uint32_t> count;
    for (std::uint32_t i = 0; i < set_.flows.size(); ++i)
      message_[i] = count[{set_.flows[i].src, set_.flows[i].dst}]++;
  }

  void start_not_before(std::uint32_t flow) {
    const double at = set_.flows[flow].start.seconds();
    if (at <= network_.now()) return start(flow);
    network_.timer(at, flow);
  }
  void start(std::uint32_t i) {
    const FlowSet::Flow& flow = set_.flows[i];
    ends_[i].start_s = network_.now();
    ends_[i].started = true;
    const std::uint32_t streams = network_.router().stream_count();
    streams_left_[i] = streams;
    for (std::uint32_t s = 0; s < streams; ++s) {
      const Part part{flow.src, flow.dst, s, 1, message_[i], 1};
      network_.send({.parts = {&part, 1},
                     .bytes = static_cast<double>(flow.size.count) / streams,
                     .wire = Wire::counted,
                     .tag = i,
                     .via = set_.via_of(flow)});
    }
  }
  void on_delivered(std::uint64_t tag) override {
    const auto i = static_cast<std::uint32_t>(tag);
    if (--streams_left_[i] > 0) return;
    ends_[i].end_s = network_.now();
    ends_[i].finished = true;
    for (std::uint32_t d = first_dependent_[i]; d != FlowSet::none; d = next_sibling_[d])
      start_not_before(d);
  }
  void on_timer(std::uint64_t tag) override {
    if (tag == look_tag) return look();
    start(static_cast<std::uint32_t>(tag));
  }
  void look() {
    for (std::size_t i = 0; i < moments_.size(); ++i) moments_[i].end = ends_[i];
    network_.for_each_active([&](std::uint64_t tag, double left, double rate) {
      moments_[tag].bytes_left += left;
      moments_[tag].rate += rate;
    });
  }

  static constexpr std::uint64_t look_tag = std::uint64_t{1} << 32;  // beyond all flows

  const FlowSet& set_;
  Network& network_;
  std::vector<FlowMoment> moments_;
  std::vector<FlowEnd> ends_;
  std::vector<std::uint32_t> streams_left_, next_sibling_, first_dependent_, message_;
};

std::string digest_of(const std::vector<FlowEnd>& ends) {
  Digest digest;
  for (const FlowEnd& end : ends) {
    digest.add(from_seconds(end.start_s).ps);
    digest.add(end.finished ? from_seconds(end.end_s).ps : std::int64_t{-1});
  }
  return digest.hex();
}

}  // namespace

std::vector<bool> usable_links(const FlowSet& set, Router& router) {
  std::vector<bool> out(router.fabric().link_count(), false);
  std::vector<LinkId> links;
  const auto mark = [&](NodeId src, NodeId dst, std::span<const NodeId> via) {
    links.clear();
    router.append_usable({src, dst, 0, 0, via}, links);
    for (const LinkId link : links) out[link.index()] = true;
  };
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (const FlowSet::Flow& flow : set.flows) {
    if (const auto via = set.via_of(flow); !via.empty()) {
      mark(flow.src, flow.dst, via);
    } else {
      pairs.emplace_back(flow.src, flow.dst);
    }
  }
  std::ranges::sort(pairs);
  const auto repeats = std::ranges::unique(pairs);
  pairs.erase(repeats.begin(), repeats.end());
  for (const auto& [src, dst] : pairs) mark(src, dst, {});
  return out;
}

FlowRunResult run_flows(const FlowSet& set, Router& router, std::span<const StateChange> changes,
                        const NetworkOptions& options) {
  Network network(router, changes, options);
  FlowRunResult out;
  out.usable = usable_links(set, router);
  out.flows = FlowRun(set, network).run();
  for (const FlowEnd& end : out.flows)
    if (end.finished) out.makespan_s = std::max(out.makespan_s, end.end_s);
  out.link_bytes = network.link_bytes();
  out.digest = digest_of(out.flows);
  out.rate_error = network.simulation().rate_error();
  out.counters = network.simulation().counters();
  out.events = network.simulation().event_count();
  return out;
}

std::vector<FlowMoment> flows_at(const model::FlowSet& set, Router& router,
                                 std::span<const StateChange> changes,
                                 const NetworkOptions& options, Time at) {
  Network network(router, changes, options);
  FlowRun run(set, network);
  run.look_at(at.seconds());
  run.run();
  return run.take_moments();
}

}  // namespace weft::engine::fluid
