#include "cli/serve_nats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace weft::cli {

ServedNats::ServedNats(adapt::live::NatsFeedSettings settings, serve::Service& service, Say say)
    : service_(service),
      say_(std::move(say)),
      feed_(
          std::move(settings),
          [this](std::string_view feed, const std::vector<std::string>& lines) {
            return take(feed, lines);
          },
          say_) {}

// Who sent them has gone: what is wrong with a line is said here.
Status ServedNats::take(std::string_view feed, const std::vector<std::string>& lines) {
  constexpr std::size_t told_most = 10, shown = 200;
  WEFT_TRY(const serve::Receipt receipt, service_.accept(feed, lines, ""));
  if (receipt.state == serve::Receipt::State::busy)
    return fail(Errc::io, {}, "NATS: too many lines wait for the store");
  rejected_ += receipt.refused_count;
  const std::size_t told = std::min(told_most, receipt.refused.size());
  for (std::size_t i = 0; i < told; ++i)
    say_(fmt::format("NATS: a line of {} was rejected: {}: {}", feed, receipt.refused[i].why,
                     quote(lines[receipt.refused[i].line - 1].substr(0, shown))));
  if (receipt.refused_count > told)
    say_(
        fmt::format("NATS: {} more lines of {} were rejected", receipt.refused_count - told, feed));
  return {};
}

std::string ServedNats::metrics() const {
  const adapt::live::NatsFeed::Counts counts = feed_.counts();
  std::string out;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view meaning,
                       std::uint64_t value) {
    out += fmt::format("# HELP weft_nats_{0} {1}\n# TYPE weft_nats_{0} {2}\nweft_nats_{0} {3}\n",
                       name, meaning, type, value);
  };
  add("connected", "gauge", "Whether there is a connection to NATS.", counts.is_connected ? 1 : 0);
  add("messages_total", "counter", "Messages acknowledged to NATS.", counts.messages);
  add("lines_total", "counter", "Lines in them.", counts.lines);
  add("lines_rejected_total", "counter", "Lines that their feed does not accept.", rejected_);
  add("messages_dropped_total", "counter", "Messages whose subject does not name a feed.",
      counts.dropped);
  add("failures_total", "counter", "Connections lost, and lines that the store did not take.",
      counts.failures);
  add("messages_waiting", "gauge", "Messages in the stream, as of some seconds ago.",
      counts.waiting);
  return out;
}

}  // namespace weft::cli
