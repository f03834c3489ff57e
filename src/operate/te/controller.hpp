// The controller of a zone: hears of cables, keeps the marks right, and renews them.
#pragma once

#include <optional>
#include <vector>

#include "operate/te/te_loop.hpp"
#include "port/link_feed.hpp"

namespace weft::operate::te {

struct Pace {
  Duration renew = 1_s;       // well within every sink's lease
  Duration retry = 1_s;       // of what a sink refused
  Duration ask = 200'000_us;  // whether cables that came back have their routes
};

struct Event {
  Time at;
  std::vector<LinkNews> news;  // empty at the start, and after holds and drains
  Step step;
  bool is_first = false;  // of this controller
};

// What runs on every network, simulated, emulated or live: each gives its feed, its sink and its
// time. A cable that comes back counts as up once it has its routes; then the hold of
// LoopOptions::damping begins. Keeps nothing that another one could not find out.
class Controller {
 public:
  // `fabric`, `feed` and `sink` must outlive it. Fails: as TeLoop::create.
  static Result<Controller> create(const Fabric& fabric, port::LinkFeed& feed,
                                   port::RouteSink& sink, std::uint64_t seed,
                                   const LoopOptions& options = {}, const Pace& pace = {});

  // The first decision, over what is installed. Fails: as the sink.
  Result<Event> start(std::vector<Flow> flows, Time now);
  // What was decided, if anything was to decide. To be called when the feed has news, and no later
  // than next_turn(). What the sink refuses is tried again. Cost: that of TeLoop::step().
  std::optional<Event> turn(Time now);
  Time next_turn() const;

 private:
  Controller(port::LinkFeed& feed, port::RouteSink& sink, TeLoop loop, const Pace& pace)
      : feed_(&feed), sink_(&sink), loop_(std::move(loop)), pace_(pace) {}
  std::vector<LinkNews> usable_news(Time now);
  bool take_drains();
  Status restore(std::span<const LinkNews> news);

  port::LinkFeed* feed_;
  port::RouteSink* sink_;
  TeLoop loop_;
  Pace pace_;
  Time renewed_, asked_;
  std::optional<Time> next_;               // a decision without news
  std::vector<model::CableId> returning_;  // with carrier, and not yet with routes
  model::State drained_;
};

}  // namespace weft::operate::te
