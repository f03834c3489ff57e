#include "operate/te/controller.hpp"

#include <algorithm>
#include <utility>

namespace weft::operate::te {

Result<Controller> Controller::create(const Fabric& fabric, port::LinkFeed& feed,
                                      port::RouteSink& sink, std::uint64_t seed,
                                      const LoopOptions& options, const Pace& pace) {
  WEFT_TRY(TeLoop loop, TeLoop::create(fabric, sink, seed, options));
  return Controller(feed, sink, std::move(loop), pace);
}

Result<Event> Controller::start(std::vector<Flow> flows, Time now) {
  WEFT_TRY_STATUS(sink_->renew());
  renewed_ = asked_ = now;
  take_drains();
  Event out{.at = now, .news = feed_->news(), .step = {}, .is_first = true};
  loop_.note(out.news, now);
  WEFT_TRY(out.step, loop_.start(std::move(flows), now));
  next_ = loop_.next_step(now);
  return out;
}

Time Controller::next_turn() const {
  Time out = renewed_ + pace_.renew;
  if (next_) out = std::min(out, *next_);
  if (!returning_.empty()) out = std::min(out, asked_ + pace_.ask);
  return out;
}

std::optional<Event> Controller::turn(Time now) {
  Event out{.at = now, .news = usable_news(now), .step = {}};
  // A switch that refuses is asked again in the next turn; it falls back on BGP after the lease.
  if (now - renewed_ >= pace_.renew && sink_->renew()) renewed_ = now;
  const bool is_drained = take_drains();
  if (out.news.empty() && !is_drained && (!next_ || *next_ > now)) return std::nullopt;
  Status done = restore(out.news);
  if (done) {
    Result<Step> step = loop_.step(out.news, now);
    if (step)
      out.step = *std::move(step);
    else
      done = std::unexpected(std::move(step).error());
  } else {
    loop_.note(out.news, now);
  }
  next_ = done ? loop_.next_step(now) : std::optional(now + pace_.retry);
  if (!done) return std::nullopt;
  return out;
}

// Cables that went down; where there are none, those that came back and have their routes by now.
std::vector<LinkNews> Controller::usable_news(Time now) {
  std::vector<LinkNews> news = feed_->news();
  for (const LinkNews& one : news) {
    std::erase(returning_, one.cable);
    if (one.is_up) returning_.push_back(one.cable);
  }
  std::erase_if(news, [](const LinkNews& one) { return one.is_up; });
  if (!news.empty() || returning_.empty() || now - asked_ < pace_.ask) return news;
  asked_ = now;
  for (const model::CableId cable : feed_->routed(returning_)) {
    std::erase(returning_, cable);
    news.push_back({cable, true});
  }
  return news;
}

bool Controller::take_drains() {
  model::State drained = feed_->drained();
  if (drained.troubled_links() == drained_.troubled_links() &&
      drained.troubled_nodes() == drained_.troubled_nodes())
    return false;
  drained_ = std::move(drained);
  loop_.set_base(drained_);
  return true;
}

Status Controller::restore(std::span<const LinkNews> news) {
  std::vector<model::CableId> back;
  for (const LinkNews& one : news)
    if (one.is_up) back.push_back(one.cable);
  return back.empty() ? Status() : sink_->restore(back);
}

}  // namespace weft::operate::te
