// What queues did, where packets were simulated.
#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"
#include "plan/report/terminal.hpp"

namespace weft::plan::report {
namespace {

using model::PacketOutcome;
using model::VariantOutcome;

constexpr std::size_t tier_rows_max = 60;

std::string queue_cell(double bytes) {
  return std::isfinite(bytes) ? human(Bytes{static_cast<std::int64_t>(bytes)}) : "-";
}

std::string count_cell(std::uint64_t n) { return n == 0 ? "-" : std::to_string(n); }

void append(std::string& line, std::string_view what, std::uint64_t count) {
  if (count > 0) line += fmt::format(", {} {}", count, what);
}

// Sums over all links; what did not happen is left out.
std::string sums_line(const std::string& name, const PacketOutcome& packet) {
  std::string line = fmt::format("{}: {}, {} packet hops", printable(name),
                                 printable(packet.transport), packet.hops);
  append(line, "pauses", packet.pause_frames);
  append(line, "ECN marks", packet.ecn_marks);
  append(line, "CNPs", packet.cnps);
  append(line, "trims", packet.trims);
  append(line, "timeouts", packet.timeouts);
  append(line, "packets retransmitted", packet.retransmissions);
  line += packet.drops == 0 ? ", no drops" : fmt::format(", {} drops", packet.drops);
  append(line, "of them due to insufficient headroom", packet.drops_headroom);
  append(line, "of them on dead or lossy links", packet.drops_link);
  append(line, "control packets lost", packet.drops_control);
  if (packet.buffer_max_bytes > 0)
    line += fmt::format("; fullest switch {}", queue_cell(packet.buffer_max_bytes));
  return line + "\n";
}

}  // namespace

std::string packet_text(const model::Outcome& outcome) {
  using enum Table::Align;
  Table table({{"queues", left},
               {"tier", left},
               {"p99"},
               {"most"},
               {"pauses"},
               {"p99 of one"},
               {"longest paused"},
               {"ECN marks"},
               {"drops"}});
  std::string sums;
  std::size_t rows = 0;
  for (const VariantOutcome& variant : outcome.variants) {
    if (!variant.packet) continue;
    sums += sums_line(variant.name, *variant.packet);
    for (const PacketOutcome::Tier& tier : variant.packet->tiers) {
      if (++rows > tier_rows_max) continue;
      table.add({printable(variant.name), printable(tier.name), queue_cell(tier.queue_p99_bytes),
                 queue_cell(tier.queue_max_bytes), count_cell(tier.pauses),
                 time_cell(tier.pause_p99_s),
                 tier.paused_max_s > 0 ? time_cell(tier.paused_max_s) : "-",
                 count_cell(tier.ecn_marks), count_cell(tier.drops)});
    }
  }
  if (sums.empty()) return "";
  const std::string more =
      rows > tier_rows_max
          ? fmt::format("... and {} more tiers; report.json has them\n", rows - tier_rows_max)
          : "";
  return table.text() + more + "\n" + sums;
}

}  // namespace weft::plan::report
