// The controller at work: news of links in, changed marks out.
#pragma once

#include <span>
#include <vector>

#include "operate/te/damping.hpp"
#include "operate/te/decide.hpp"
#include "port/link_feed.hpp"
#include "port/route_sink.hpp"

namespace weft::operate::te {

using port::LinkNews;

// What a call did.
struct Step {
  Decision decision;
  std::uint32_t changes = 0;  // marks that were sent to the sink
};

struct LoopOptions {
  model::State base = {};  // what is known otherwise, such as drains
  Settings settings;
  Damping damping;
};

// Holds what it was told and what it installed, and nothing that cannot be had again: a second
// controller that is started on the same sink goes on where this one ended. Time is the caller's.
class TeLoop {
 public:
  // `fabric` and `sink` must outlive the loop. Fails: Errc::unsupported for what is no two-tier
  // Clos.
  static Result<TeLoop> create(const Fabric& fabric, port::RouteSink& sink, std::uint64_t seed,
                               const LoopOptions& options = {});

  // Of LoopOptions, from the next decision on.
  void set_base(const model::State& base) { options_.base = base; }
  // News without a decision: start() or step() makes one.
  void note(std::span<const LinkNews> news, Time now) {
    for (const LinkNews& one : news) history_.note(one.cable, one.is_up, now);
  }
  // Takes over what is installed, decides, and installs the difference; marks of QPs that are not
  // among `flows` are removed. A flow is divided while its second QP has a mark; hosts that find it
  // send half over each. Fails: as the sink; the next call tries again.
  Result<Step> start(std::vector<Flow> flows, Time now);
  // Decides anew if the news change anything. Cost: that of decide(), and of the sink.
  Result<Step> step(std::span<const LinkNews> news, Time now);
  // When step() should be called without news: cables on hold may be used again.
  std::optional<Time> next_step(Time now) const { return history_.next_release(now); }

  const std::vector<Flow>& flows() const { return flows_; }
  const route::Zone& zone() const { return zone_; }

 private:
  TeLoop(port::RouteSink& sink, route::Zone zone, route::Router hashing, const LoopOptions& options)
      : sink_(&sink),
        zone_(std::move(zone)),
        hashing_(std::move(hashing)),
        options_(options),
        history_(options.damping) {}
  Result<Step> install(Time now);
  port::RouteMark mark_of(std::size_t flow, std::uint16_t port, std::uint32_t column) const;

  port::RouteSink* sink_;
  route::Zone zone_;
  route::Router hashing_;
  LoopOptions options_;
  LinkHistory history_;
  std::vector<Flow> flows_;
  Marks installed_, second_;  // as the sink has them: of first and of second QPs
};

}  // namespace weft::operate::te
