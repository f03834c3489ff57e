#include "adapt/live/command_device_state.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "adapt/live/command_template.hpp"
#include "model/events/entity.hpp"

namespace weft::adapt::live {
namespace {

using port::StatePiece;

constexpr std::array<std::string_view, 2> state_placeholders{"device", "host"};
constexpr std::size_t pieces_max = 32;
// Of the patience, for the end of programs that hang: what the others said is to arrive in time.
constexpr std::chrono::milliseconds farewell{300};

bool is_piece_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

DeviceCommands::Piece read_piece(const Config& pieces, const Config::Field& field, Errors& errors) {
  DeviceCommands::Piece out{.name = field.key, .argv = {}};
  if (field.value.kind != Config::Kind::map) {
    Reader reader(pieces, "pieces", errors);
    out.argv = read_argv(reader, field.key, state_placeholders, true);
    return out;
  }
  const std::array<std::string, 2> ends{"begin", "end"};
  Reader reader(field.value, field.key, errors);
  out.argv = read_argv(reader, "run", state_placeholders, true);
  out.keep = static_cast<Keep>(reader.choice("keep", ends, 0));
  reader.finish();
  return out;
}

DeviceCommands::Group read_group(const Config& config, Errors& errors) {
  Reader reader(config, "devices", errors);
  DeviceCommands::Group out;
  out.match = reader.text("match", "");
  if (const RE2 pattern(out.match, RE2::Quiet); !pattern.ok())
    reader.error(Errc::value, reader.where("match"), pattern.error());
  for (const Token& token : reader.texts("environment")) out.environment.emplace_back(token.text);
  const Config* pieces = reader.child("pieces");
  if (pieces == nullptr || pieces->kind != Config::Kind::map || pieces->fields.empty() ||
      pieces->fields.size() > pieces_max) {
    reader.error(
        Errc::value, reader.where("pieces"),
        fmt::format("pieces must be a map of 1 to {} names to the commands to run", pieces_max),
        "e.g. pieces: {routes: [/usr/bin/ssh, \"{host}\", show, ip, route]}");
  } else {
    for (const Config::Field& field : pieces->fields) {
      if (!is_piece_name(field.key))
        reader.error(Errc::value, field.value.where,
                     fmt::format("\"{}\" cannot be used as a file name", field.key),
                     "use lower-case letters, digits and _");
      out.pieces.push_back(read_piece(*pieces, field, errors));
    }
  }
  reader.finish();
  return out;
}

StatePiece ask(const ProgramSpec& spec, const DeviceCommands::Piece& piece, std::size_t bytes_max) {
  StatePiece out{.name = piece.name, .text = {}, .error = {}};
  Result<ProgramOutcome> outcome = run_program(spec);
  if (!outcome) {
    out.error = outcome.error().text();
    return out;
  }
  if (outcome->timed_out || outcome->exit_code != 0) out.error = how_it_ended(spec, *outcome);
  out.took = outcome->took;
  out.is_cut = outcome->is_cut;
  out.text = std::move(outcome->output);
  cut(out, bytes_max, piece.keep);
  return out;
}

}  // namespace

Result<DeviceCommands> read_device_commands(const Config& config) {
  Errors errors;
  Reader reader(config, "snapshots", errors);
  DeviceCommands out;
  const Duration patience = reader.duration("patience", Duration{out.patience.count() * ps_per_ms});
  if (patience.ps < 10 * ps_per_ms || patience.ps > 60'000 * ps_per_ms)
    reader.error(Errc::value, reader.where("patience"), "patience must be between 10 ms and 1 min");
  out.patience = std::chrono::milliseconds(patience.ps / ps_per_ms);
  const Config* devices = reader.child("devices");
  if (devices == nullptr || devices->kind != Config::Kind::list || devices->items.empty())
    reader.error(Errc::value, reader.where("devices"),
                 "devices must be a list of groups with the commands to run",
                 "e.g. devices: [{pieces: {log: [/usr/bin/ssh, \"{host}\", show, logging]}}]");
  else
    for (const Config& item : devices->items) out.groups.push_back(read_group(item, errors));
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

CommandDeviceState::CommandDeviceState(const model::Fabric& fabric, DeviceCommands commands)
    : fabric_(fabric), commands_(std::move(commands)) {}

Result<std::vector<StatePiece>> CommandDeviceState::collect(std::string_view device,
                                                            std::chrono::milliseconds patience,
                                                            std::size_t bytes_max) {
  WEFT_TRY(const model::Entity entity, model::find_entity(fabric_, {device, {}}));
  if (entity.kind != model::EntityKind::node)
    return fail(Errc::unknown, {}, fmt::format("{} is not a device", device));
  const auto group = std::ranges::find_if(commands_.groups, [&](const DeviceCommands::Group& g) {
    return g.match.empty() || RE2::FullMatch(device, RE2(g.match, RE2::Quiet));
  });
  if (group == commands_.groups.end()) return std::vector<StatePiece>{};
  std::string host(device);
  std::ranges::replace(host, ':', '-');
  const std::array<Placeholder, 2> values{{{"device", std::string(device)}, {"host", host}}};
  std::vector<StatePiece> out(group->pieces.size());
  std::vector<std::jthread> asking;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const DeviceCommands::Piece& piece = group->pieces[i];
    // A byte more, so that what is too long is cut where a line ends.
    ProgramSpec spec{.argv = {},
                     .environment = group->environment,
                     .patience = patience - std::min(patience / 5, farewell),
                     .output_bytes_max = bytes_max + 1,
                     .keep = piece.keep};
    WEFT_TRY(spec.argv, fill_argv(piece.argv, values));
    asking.emplace_back([&out, &piece, i, bytes_max, spec = std::move(spec)] {
      out[i] = ask(spec, piece, bytes_max);
    });
  }
  asking.clear();  // joins
  return out;
}

}  // namespace weft::adapt::live
