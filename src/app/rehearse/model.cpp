// What fails how often, as YAML.
#include <fmt/format.h>

#include "app/rehearse/rehearse.hpp"
#include "model/fabric/fault_catalogue.hpp"

namespace weft::app {
namespace {

constexpr double rate_max = 100;

const Config& section(Reader& reader, std::string_view key) {
  static const Config none;
  const Config* found = reader.child(key);
  return found == nullptr ? none : *found;
}

std::int64_t read_ns(Reader& reader, std::string_view key) {
  const std::int64_t ns = reader.duration(key, {}).ps / ps_per_ns;
  if (ns > 0) return ns;
  reader.error(Errc::value, reader.where(key), "it must be longer than 0", "write e.g. \"4 h\"");
  return ns_per_s;
}

void read_rates(const Config& config, RehearseModel::Rates& out, Errors& errors) {
  Reader reader(config, "rates", errors);
  const auto rate = [&](std::string_view key) { return reader.number(key, {}, 0, rate_max); };
  out.host_cable = rate("host_cable");
  out.trunk_cable = rate("trunk_cable");
  out.rack_switch = rate("rack_switch");
  out.other_switch = rate("switch");
  out.line_card = rate("line_card");
  out.control_plane = rate("control_plane");
  out.grey = rate("grey_loss");
  out.optic = rate("optic");
  out.flap = rate("port_flap");
  out.host_nic = rate("host_nic");
  out.host = rate("host");
  out.blips = rate("blips_per_day");
  reader.finish();
}

Result<RehearseModel> read(const Config& config) {
  Errors errors;
  Reader reader(config, "rehearsal", errors);
  RehearseModel out;
  read_rates(section(reader, "rates"), out.rates, errors);
  Reader loss(section(reader, "loss"), "loss", errors);
  out.grey_least = loss.number("grey_least", {}, 1e-6, 1);
  out.grey_most = loss.number("grey_most", {}, 1e-6, 1);
  out.optic_loss = loss.number("optic", {}, 1e-6, 1);
  out.bad_loss = loss.number("bad_minute", {}, 1e-9, 1);
  loss.finish();
  Reader lemons(section(reader, "lemons"), "lemons", errors);
  out.lemons = static_cast<std::uint32_t>(lemons.count("count", {}, 0, 100'000));
  out.lemon_again_ns = read_ns(lemons, "again");
  lemons.finish();
  Reader people(section(reader, "people"), "people", errors);
  out.operations.visit_least_ns = read_ns(people, "visit_least");
  out.operations.visit_mean_ns = read_ns(people, "visit_mean");
  out.operations.nothing_found = people.number("nothing_found", {}, 0, 1);
  out.approve_ns = read_ns(people, "answer");
  people.finish();
  Reader actuators(section(reader, "actuators"), "actuators", errors);
  out.operations.actuators.fails = actuators.number("fails", {}, 0, 0.5);
  out.operations.actuators.lies = actuators.number("lies", {}, 0, 0.5);
  out.operations.actuators.late = actuators.number("late", {}, 0, 0.5);
  actuators.finish();
  out.control_plane_ns = read_ns(reader, "control_plane_lasts");
  reader.finish();
  if (out.grey_most < out.grey_least)
    errors.push_back({Errc::value, config.where, "grey_most is less than grey_least", "", {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

constexpr std::string_view rest_of_model = R"yaml(
  blips_per_day: 0.05     # single carrier losses per cable; HPN: 5,000 to 60,000 a day in total

loss:
  grey_least: 0.001       # log-uniform between the two
  grey_most: 0.05
  optic: 0.05             # at its worst
  bad_minute: 0.001       # loss above which a minute is bad; same as the default of weft sli

lemons:
  count: 12             # cables whose repairs do not last until they are replaced
  again: 3 d              # mean time until they fail again

people:
  visit_least: 30 min     # from call to arrival, plus an exponential time
  visit_mean: 4 h
  nothing_found: 0.2      # share of visits to intermittent faults
  answer: 10 min          # time to answer a proposal

actuators:                 # actions that go wrong
  fails: 0.02
  lies: 0.005
  late: 0.05

control_plane_lasts: 5 min
)yaml";

// The rates of the catalogue. Cables between switches fail as those to hosts do, and all switches
// alike: nobody has published more.
std::string rates_text() {
  using enum model::FaultKind;
  std::string out = R"yaml(# Failure model. A file given by --model is merged over this, key by key.
# "assumed": no public figure was found; replace it with yours.

rates:                    # faults per component in 30 days)yaml";
  const auto add = [&](std::string_view key, model::FaultKind kind, std::string_view note = {}) {
    const model::FaultEntry& entry = fault_entry(kind);
    out += fmt::format("\n  {:<24}# {}", fmt::format("{}: {}", key, entry.per_month),
                       note.empty() ? entry.source : note);
  };
  add("host_cable", link_down);
  add("trunk_cable", link_down, "assumed: same as cables to hosts");
  add("rack_switch", switch_down);
  add("switch", switch_down, "assumed: same as rack switches");
  add("line_card", line_card);
  add("control_plane", control_plane);
  add("grey_loss", link_lossy, "assumed, per cable between switches, as are the next two");
  add("optic", optic);
  add("port_flap", port_flap);
  add("host_nic", nic_down);
  add("host", host_down);
  return out;
}

}  // namespace

std::string_view rehearse_model_text() {
  static const std::string text = rates_text() + std::string(rest_of_model);
  return text;
}

Result<RehearseModel> read_rehearse_model(const Config& config) {
  return read(laid_over(rehearse_model_text(), config));
}

}  // namespace weft::app
