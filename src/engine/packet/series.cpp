#include "engine/packet/series.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::engine::packet {
namespace {

// Payload of a message that is acknowledged.
std::uint64_t acknowledged(const World& world, std::uint32_t m) {
  const Message& message = world.set.messages[m];
  if (world.ends[m].end != never) return message.bytes;
  if (world.ends[m].start == never || world.fanout > 1) return 0;
  const Sender& sender = world.senders[message.connection];
  return world.acknowledged(sender, m) * sender.payload;
}

}  // namespace

Result<Sampler> Sampler::create(const World& world) {
  const SeriesOptions& options = world.options.series;
  Sampler out;
  if (options.interval.ps <= 0) return out;
  out.interval_ = static_cast<Ps>(options.interval.ps);
  out.next_ = out.interval_;
  // Even, so that the last sample stays when every other one goes.
  out.samples_max_ = std::max<std::size_t>(options.samples_max / 2 * 2, 2);
  for (const std::string& name : options.links) {
    WEFT_TRY(const LinkId link, world.fabric.find_link({name, {"transport.series.links", 0, 0}}));
    out.links_.push_back({.id = link.value, .name = world.fabric.name(link)});
  }
  for (std::size_t i = 0; i < options.flows.size(); ++i) {
    const std::string& name = options.flows[i];
    const Where where{"transport.series.flows", 0, 0};
    WEFT_TRY(const std::int64_t index, parse_count({name, where}));
    if (index < 0 || static_cast<std::size_t>(index) >= world.set.size())
      return fail(Errc::unknown, where,
                  fmt::format("message {} does not exist: there are {}", name, world.set.size()),
                  "messages are numbered from 0, in input order");
    out.messages_.push_back(
        {.id = static_cast<std::uint32_t>(index),
         .name = i < options.flow_names.size() ? options.flow_names[i] : "message " + name});
  }
  return out;
}

void Sampler::sample(World& world, const std::vector<std::unique_ptr<Shard>>& shards, Ps at) {
  WEFT_CHECK(time_s_.empty() || seconds(at) > time_s_.back());
  time_s_.push_back(seconds(at));
  const auto add_rate = [&](Watched& w, std::uint64_t bytes) {
    w.rate.push_back(static_cast<double>(bytes - w.bytes) / seconds(interval_));
    w.bytes = bytes;
  };
  for (Watched& w : links_) {
    const NodeId from = world.fabric.from(LinkId(w.id));
    w.queue.push_back(shards[world.partition[from.index()]]->waiting_at(w.id, at));
    add_rate(w, world.tallies[w.id].bytes);
  }
  for (Watched& w : messages_) add_rate(w, acknowledged(world, w.id));
  if (time_s_.size() >= samples_max_) thin();
  // Behind the last message only timers are left, which may run long.
  std::size_t over = 0;
  for (const auto& shard : shards) over += shard->messages_over();
  next_ = over == world.set.size() ? never : at + interval_;
}

// Keeps every other time; a rate becomes the mean of the two intervals that it stands for.
void Sampler::thin() {
  const std::size_t half = time_s_.size() / 2;
  for (std::size_t i = 0; i < half; ++i) time_s_[i] = time_s_[2 * i + 1];
  time_s_.resize(half);
  for (std::vector<Watched>* group : {&links_, &messages_}) {
    for (Watched& w : *group) {
      for (std::size_t i = 0; i < half; ++i) {
        w.rate[i] = (w.rate[2 * i] + w.rate[2 * i + 1]) / 2;
        if (!w.queue.empty()) w.queue[i] = w.queue[2 * i + 1];
      }
      w.rate.resize(half);
      if (!w.queue.empty()) w.queue.resize(half);
    }
  }
  WEFT_CHECK(time_s_.size() == half);
  interval_ *= 2;
}

std::vector<Series> Sampler::take() const {
  std::vector<Series> out;
  for (const Watched& w : links_) {
    out.push_back({"queue " + w.name, "B", time_s_, w.queue});
    out.push_back({"rate " + w.name, "B/s", time_s_, w.rate});
  }
  for (const Watched& w : messages_) out.push_back({"rate " + w.name, "B/s", time_s_, w.rate});
  return out;
}

}  // namespace weft::engine::packet
