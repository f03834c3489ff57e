#include "adapt/live/command_actuator.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "adapt/live/command_template.hpp"
#include "base/text.hpp"
#include "model/events/entity.hpp"

namespace weft::adapt::live {
namespace {

using port::Service;

constexpr std::int64_t exit_code_max = 255;

constexpr std::array<std::string_view, 8> action_placeholders{
    "entity", "action", "case", "id", "device", "interface", "peer", "peer_interface"};
using Values = std::array<Placeholder, 8>;

Result<Values> values_of(const model::Fabric& fabric, const port::Action& action,
                         std::string_view verb) {
  WEFT_TRY(const model::Entity entity, model::find_entity(fabric, {action.entity, {}}));
  std::optional<model::LinkId> link;
  std::string device;
  switch (entity.kind) {
    case model::EntityKind::node:
    case model::EntityKind::card:
      device = fabric.name(model::NodeId(entity.id));
      break;
    case model::EntityKind::port:
    case model::EntityKind::link:
      link = model::LinkId(entity.id);
      break;
    case model::EntityKind::cable:
      link = forward(model::CableId(entity.id));
      break;
    case model::EntityKind::none:
    case model::EntityKind::scope:
      return fail(Errc::unknown, {},
                  fmt::format("{} is neither a device nor a cable", action.entity));
  }
  if (link) device = fabric.name(fabric.from(*link));
  const auto of_link = [&](auto get) { return link ? get(*link) : std::string(); };
  return Values{
      {{"entity", action.entity},
       {"action", std::string(verb)},
       {"case", action.case_id},
       {"id", action.id},
       {"device", device},
       {"interface", of_link([&](auto l) { return fabric.interface_name(l); })},
       {"peer", of_link([&](auto l) { return fabric.name(fabric.to(l)); })},
       {"peer_interface", of_link([&](auto l) { return fabric.interface_name(reverse(l)); })}}};
}

bool is_in(int code, const std::vector<int>& codes) {
  return std::ranges::find(codes, code) != codes.end();
}

std::unexpected<Error> failure(const CommandSettings& settings, const ProgramSpec& spec,
                               const ProgramOutcome& outcome) {
  const int code = outcome.timed_out ? -1 : outcome.exit_code;
  return fail(is_in(code, settings.exit_harm)      ? Errc::infeasible
              : is_in(code, settings.exit_unknown) ? Errc::unknown
                                                   : Errc::io,
              {}, how_it_ended(spec, outcome));
}

std::optional<std::string> extract(const Extract& how, const std::string& output) {
  if (!how.pattern.empty()) {
    std::string out;
    if (RE2::PartialMatch(output, RE2(how.pattern, RE2::Quiet), &out)) return out;
    return std::nullopt;
  }
  using nlohmann::json;
  try {
    const json root = json::parse(output);
    const json& value = root.at(json::json_pointer(how.pointer));
    return value.is_string() ? value.get<std::string>() : value.dump();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool is_any(std::string_view value, const std::vector<std::string>& names) {
  const auto same = [](char a, char b) { return lower_case(a) == lower_case(b); };
  return std::ranges::any_of(
      names, [&](const std::string& name) { return std::ranges::equal(value, name, same); });
}

std::vector<int> read_codes(Reader& reader, std::string_view key, std::vector<int> fallback) {
  if (!reader.has(key)) return fallback;
  std::vector<int> out;
  for (const Token& token : reader.texts(key)) {
    const auto code = parse_count(token);
    if (!code || *code < 0 || *code > exit_code_max)
      reader.error(Errc::value, token.where, "exit codes must be 0 to 255");
    else
      out.push_back(static_cast<int>(*code));
  }
  return out;
}

Extract read_extract(Reader& parent, std::string_view key, Errors& errors) {
  Extract out;
  const Config* config = parent.child(key);
  if (config == nullptr) return out;
  Reader reader(*config, std::string(key), errors);
  out.pointer = reader.text("json", "");
  out.pattern = reader.text("pattern", "");
  if (out.pointer.empty() == out.pattern.empty())
    reader.error(Errc::value, reader.where(), "use either json or pattern");
  if (!out.pointer.empty() && !out.pointer.starts_with('/'))
    reader.error(Errc::value, reader.where("json"), "a JSON pointer must begin with \"/\"");
  if (!out.pattern.empty()) {
    const RE2 pattern(out.pattern, RE2::Quiet);
    if (!pattern.ok() || pattern.NumberOfCapturingGroups() != 1)
      reader.error(Errc::value, reader.where("pattern"),
                   pattern.ok() ? "the pattern needs one group \"(...)\"" : pattern.error());
  }
  reader.finish();
  return out;
}

std::vector<std::string> read_names(Reader& reader, std::string_view key, std::string fallback) {
  std::vector<std::string> out;
  for (const Token& token : reader.texts(key)) out.emplace_back(token.text);
  if (out.empty()) out.push_back(std::move(fallback));
  return out;
}

}  // namespace

Result<CommandSettings> read_command_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "command actuator", errors);
  CommandSettings out;
  out.drain = read_argv(reader, "drain", action_placeholders, true);
  out.undrain = read_argv(reader, "undrain", action_placeholders, true);
  out.state = read_argv(reader, "state", action_placeholders, true);
  out.check = read_argv(reader, "check", action_placeholders, false);
  for (const Token& token : reader.texts("environment")) out.environment.emplace_back(token.text);
  const Duration patience = reader.duration("timeout", Duration{20'000 * ps_per_ms});
  if (patience.ps < 10 * ps_per_ms || patience.ps > 600'000 * ps_per_ms)
    reader.error(Errc::value, reader.where("timeout"),
                 "a timeout must be between 10 ms and 10 min");
  out.patience = std::chrono::milliseconds(patience.ps / ps_per_ms);
  out.output_bytes_max = static_cast<std::size_t>(std::clamp<std::int64_t>(
      static_cast<std::int64_t>(reader.bytes("output", Bytes{65'536}).count), 1, 16 << 20));
  const Config nothing;
  const auto section = [&](std::string_view key) -> const Config& {
    const Config* found = reader.child(key);
    return found == nullptr ? nothing : *found;
  };
  Reader codes(section("exit"), "exit", errors);
  out.exit_done = read_codes(codes, "done", {0});
  out.exit_harm = read_codes(codes, "harm", {});
  out.exit_unknown = read_codes(codes, "unknown", {});
  codes.finish();
  Reader read(section("read"), "read", errors);
  out.state_value = read_extract(read, "state", errors);
  out.sent = read_extract(read, "sent", errors);
  out.lost = read_extract(read, "lost", errors);
  out.rate = read_extract(read, "rate", errors);
  read.finish();
  if (!out.state_value.is_given() ||
      (!out.check.empty() && !(out.sent.is_given() && out.lost.is_given())))
    reader.error(Errc::value, reader.where("read"),
                 "a command to read the state is required, and sent and lost if there is a check",
                 "e.g. read: {state: {json: /state}}");
  Reader states(section("states"), "states", errors);
  out.in_service = read_names(states, "in_service", "in_service");
  out.draining = read_names(states, "draining", "draining");
  out.drained = read_names(states, "drained", "drained");
  states.finish();
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

CommandActuator::CommandActuator(const model::Fabric& fabric, CommandSettings settings, Log log)
    : fabric_(fabric), settings_(std::move(settings)), log_(std::move(log)) {}

Result<ProgramOutcome> CommandActuator::run(const std::vector<std::string>& argv,
                                            const port::Action& action, std::string_view verb) {
  WEFT_TRY(const Values values, values_of(fabric_, action, verb));
  ProgramSpec spec{.argv = {},
                   .environment = settings_.environment,
                   .patience = settings_.patience,
                   .output_bytes_max = settings_.output_bytes_max};
  WEFT_TRY(spec.argv, fill_argv(argv, values));
  WEFT_TRY(ProgramOutcome outcome, run_program(spec));
  if (log_) log_({spec.argv, outcome});
  if (outcome.timed_out || !is_in(outcome.exit_code, settings_.exit_done))
    return failure(settings_, spec, outcome);
  return outcome;
}

Status CommandActuator::act(const port::Action& action) {
  const bool drains = action.kind == port::ActionKind::drain;
  WEFT_TRY(const ProgramOutcome done,
           run(drains ? settings_.drain : settings_.undrain, action, port::to_text(action.kind)));
  return {};
}

Result<Service> CommandActuator::state(std::string_view entity) {
  WEFT_TRY(const ProgramOutcome said,
           run(settings_.state, {.id = {}, .entity = std::string(entity), .case_id = {}}, "state"));
  const auto value = extract(settings_.state_value, said.output);
  if (!value) return Service::unknown;
  if (is_any(*value, settings_.in_service)) return Service::in_service;
  if (is_any(*value, settings_.draining)) return Service::draining;
  return is_any(*value, settings_.drained) ? Service::drained : Service::unknown;
}

Result<port::Check> CommandActuator::check(std::string_view entity) {
  if (settings_.check.empty())
    return fail(Errc::unsupported, {}, "no command is configured to check a cable");
  WEFT_TRY(const ProgramOutcome said,
           run(settings_.check, {.id = {}, .entity = std::string(entity), .case_id = {}}, "check"));
  const auto count = [&](const Extract& how) -> std::int64_t {
    const auto value = extract(how, said.output);
    return value ? parse_count({*value, {}}).value_or(-1) : -1;
  };
  const std::int64_t sent = count(settings_.sent), lost = count(settings_.lost);
  if (sent < 0 || lost < 0 || lost > sent)
    return fail(Errc::io, {},
                fmt::format("the output of {} has no packet counts: {}", settings_.check.front(),
                            last_words(said)));
  port::Check out{static_cast<std::uint64_t>(sent), static_cast<std::uint64_t>(lost)};
  if (!settings_.rate.is_given()) return out;
  const auto text = extract(settings_.rate, said.output);
  const double share = text ? parse_number({*text, {}}).value_or(-1) : -1;
  if (!(share >= 0))
    return fail(Errc::io, {},
                fmt::format("the output of {} has no share of the rate: {}",
                            settings_.check.front(), last_words(said)));
  out.rate_share = std::min(1.0, share);
  return out;
}

}  // namespace weft::adapt::live
