// The text format of Prometheus.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "observe/probe/results.hpp"

namespace weft::observe::probe {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

// Powers of 2 from about 1 us to 1 s.
std::string buckets_of(const std::string& labels, const Histogram& rtt) {
  std::string out;
  std::uint64_t below = 0;
  std::size_t bucket = 0;
  for (unsigned bits = 10; bits <= 30; bits += 2) {
    const std::uint64_t bound = std::uint64_t{1} << bits;
    for (; bucket < Histogram::bucket_count && Histogram::floor_of(bucket) < bound; ++bucket)
      below += rtt.count(bucket);
    out += fmt::format("weft_probe_rtt_seconds_bucket{{{},le=\"{:g}\"}} {}\n", labels,
                       static_cast<double>(bound) * 1e-9, below);
  }
  out += fmt::format("weft_probe_rtt_seconds_bucket{{{},le=\"+Inf\"}} {}\n", labels, rtt.total());
  return out + fmt::format("weft_probe_rtt_seconds_count{{{}}} {}\n", labels, rtt.total());
}

}  // namespace

std::string Results::to_prometheus(const ProberCounts& around) const {
  std::map<std::string, FlowCounts> rows;
  for (std::size_t i = 0; i < totals_.size(); ++i)
    rows[fmt::format(R"(src="{}",dst="{}",class="{}",scope="{}")", escaped(infos_[i].src),
                     escaped(infos_[i].dst), escaped(infos_[i].traffic_class),
                     escaped(infos_[i].scope))]
        .merge(totals_[i]);
  std::string out = head("weft_probe_probes_total", "counter", "Probes by outcome.");
  for (const auto& [labels, counts] : rows) {
    const auto row = [&](std::string_view fate, std::uint64_t count) {
      out += fmt::format("weft_probe_probes_total{{{},fate=\"{}\"}} {}\n", labels, fate, count);
    };
    row("sent", counts.sent);
    row("answered", counts.answered);
    row("late", counts.late);
    row("lost", counts.lost);
    if (counts.lost_forward) row("lost_forward", *counts.lost_forward);
    row("damaged", counts.damaged());
    row("damaged_forward", counts.damaged_forward);
    row("duplicate", counts.duplicates);
    row("refused", counts.refused);
    row("unknown", counts.unknown);
  }
  out += head("weft_probe_rtt_seconds", "histogram", "Network time of a round trip.");
  for (const auto& [labels, counts] : rows) out += buckets_of(labels, counts.rtt);
  out += head("weft_probe_dropped_total", "counter", "Answers dropped by our own full queues.");
  out += fmt::format("weft_probe_dropped_total {}\n", around.dropped);
  out += head("weft_probe_starved_windows_total", "counter",
              "Windows that are not usable because this host was too busy.");
  return out + fmt::format("weft_probe_starved_windows_total {}\n", starved_windows_);
}

}  // namespace weft::observe::probe
