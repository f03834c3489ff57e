#include "serve/settings.hpp"

namespace weft::serve {
namespace {

constexpr std::int64_t days_max = 36'500;

// Nanoseconds; at least `least_ns`.
std::int64_t span(Reader& reader, std::string_view key, std::int64_t fallback_ns,
                  std::int64_t least_ns) {
  const Duration value = reader.duration(key, Duration{fallback_ns * ps_per_ns});
  if (value.ps >= least_ns * ps_per_ns) return value.ps / ps_per_ns;
  reader.error(Errc::value, reader.where(key), "too short",
               "use at least \"" + to_text(Duration{least_ns * ps_per_ns}) + "\"");
  return fallback_ns;
}

void read_provisional(const Config* config, ProvisionalSettings& out, Errors& errors) {
  if (config == nullptr) return;
  Reader reader(*config, "provisional", errors);
  out.wait_ns = span(reader, "wait", out.wait_ns, 1'000'000);
  out.loss_wait_ns = span(reader, "loss_wait", out.loss_wait_ns, 1'000'000);
  out.lateness_ns = span(reader, "lateness", out.lateness_ns, 0);
  out.losses = static_cast<std::uint32_t>(reader.count("losses", out.losses, 1, 1000));
  reader.finish();
}

void read_probe_monitor(const Config* config, ProbeMonitorSettings& out, Errors& errors) {
  if (config == nullptr) return;
  Reader reader(*config, "localise", errors);
  out.keep_ns = span(reader, "keep", out.keep_ns, 100'000'000);
  out.every_ns = span(reader, "every", out.every_ns, 10'000'000);
  if (out.every_ns > out.keep_ns)
    reader.error(Errc::value, reader.where(reader.has("every") ? "every" : "keep"),
                 "evidence would be forgotten between two looks: every is longer than keep",
                 "make keep longer, or every shorter");
  out.probability = reader.number("probability", out.probability, 0.5, 1);
  out.delay_us = static_cast<double>(span(reader, "delay", 1'000'000, 10'000)) / 1e3;
  out.card_ports =
      static_cast<std::uint32_t>(reader.count("ports_per_card", out.card_ports, 0, 4096));
  reader.finish();
}

void read_keep(const Config* config, ControllerSettings& out, Errors& errors) {
  if (config == nullptr) return;
  Reader reader(*config, "keep", errors);
  out.replay_ns = span(reader, "replay", out.replay_ns, 60 * ns_per_s);
  out.events_ns = reader.count("events_days", out.events_ns / ns_per_day, 1, days_max) * ns_per_day;
  out.cases_ns = reader.count("cases_days", out.cases_ns / ns_per_day, 1, days_max) * ns_per_day;
  reader.finish();
}

}  // namespace

Result<ControllerSettings> read_controller_settings(const Config& config) {
  ControllerSettings out;
  Errors errors;
  Reader reader(config, "the service", errors);
  read_provisional(reader.child("provisional"), out.provisional, errors);
  read_probe_monitor(reader.child("localise"), out.probe_monitor, errors);
  read_keep(reader.child("keep"), out, errors);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::serve
