#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/live/http_client.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/config.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/vendor_link.hpp"
#include "operate/snapshot/export.hpp"
#include "operate/snapshot/snapshot.hpp"

namespace weft::cli {
namespace {

struct SnapshotArgs {
  std::string action;  // the sub-command
  std::string file;
  std::string out, redact, mapping;  // of export
  std::string key, service;          // of link
  std::int64_t days = 7;
};

namespace snapshot = operate::snapshot;

std::string outcome_of(const snapshot::PieceEntry& piece) {
  if (!piece.error.empty()) return piece.error;
  return piece.is_cut ? "cut" : "";
}

std::string table_of(const snapshot::Manifest& manifest) {
  using enum Table::Align;
  Table table({{"device", left}, {"standing", left}, {"piece", left}, {"bytes"}, {"", left}});
  for (const snapshot::DeviceEntry& device : manifest.devices) {
    if (!device.error.empty()) table.add({device.name, device.standing, "", "", device.error});
    for (const snapshot::PieceEntry& piece : device.pieces)
      table.add({device.name, device.standing, piece.name,
                 piece.file.empty() ? "" : fmt::format("{}", piece.bytes), outcome_of(piece)});
  }
  std::string out =
      fmt::format("case {}: {} at {}\ntaken {} by {}\n", manifest.case_id, manifest.cause,
                  manifest.entity, to_text(manifest.taken), manifest.trigger);
  if (manifest.devices_left_out > 0)
    out += fmt::format("{} devices were omitted because of the limit\n", manifest.devices_left_out);
  for (const snapshot::Redaction& one : manifest.redactions)
    out += fmt::format("redacted: {} {}\n", one.count, one.what);
  return out + "\n" + table.text();
}

Status show(const Common& common, const SnapshotArgs& args) {
  WEFT_TRY(const snapshot::Snapshot found, snapshot::load(args.file));
  fmt::print("{}", common.json ? to_json(found.manifest) : table_of(found.manifest));
  return {};
}

Status check(const Common& common, const SnapshotArgs& args) {
  WEFT_TRY(const snapshot::Snapshot found, snapshot::load(args.file));
  if (common.json) {
    fmt::print("{}\n", nlohmann::json{{"file", args.file},
                                      {"whole", true},
                                      {"case", found.manifest.case_id},
                                      {"files", found.files.size()}}
                           .dump());
  } else {
    fmt::print("{} is intact: {} files as collected\n", args.file, found.files.size());
  }
  return {};
}

Result<snapshot::RedactSettings> load_settings(const SnapshotArgs& args) {
  if (args.redact.empty()) return snapshot::RedactSettings{};
  WEFT_TRY(const Config config, load_yaml(args.redact));
  Errors errors;
  snapshot::RedactSettings out = snapshot::read_redact_settings(config, errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Status write_copy(const Common& common, const SnapshotArgs& args) {
  WEFT_TRY(const snapshot::RedactSettings settings, load_settings(args));
  WEFT_TRY(const snapshot::Snapshot original, snapshot::load(args.file));
  WEFT_TRY(const snapshot::Export copy, snapshot::export_copy(original, settings));
  WEFT_TRY(const std::string bytes, snapshot::pack(copy.snapshot));
  WEFT_TRY_STATUS(write_file(args.out, bytes));
  if (!args.mapping.empty()) {
    const nlohmann::json mapping(copy.pseudonyms);
    WEFT_TRY_STATUS(write_file(args.mapping, mapping.dump(1) + "\n"));
  }
  const snapshot::Manifest& manifest = copy.snapshot.manifest;
  fmt::print(stderr, "{}", common.quiet ? "" : table_of(manifest));
  return {};
}

Status print_link(const Common& common, const SnapshotArgs& args) {
  if (!adapt::live::parse_origin(args.service))
    return fail(Errc::value, {},
                fmt::format("--service {} is not the address of a service", quote(args.service)),
                "give it as https://HOST[:PORT], as the vendor reaches it");
  WEFT_TRY(const std::string secret, read_vendor_key(args.key));
  const Timestamp until{adapt::live::SystemClock().wall().ns + args.days * 86'400 * ns_per_s};
  const std::int64_t expires_s = until.ns / ns_per_s;
  const std::string link = vendor_link(secret, args.service, args.file, expires_s);
  if (common.json)
    fmt::print("{}\n", nlohmann::json{{"link", link}, {"expires", to_text(until)}}.dump());
  else
    fmt::print("{}\n", link);
  return {};
}

int snapshot_command(const Common& common, const SnapshotArgs& args) {
  const Status status = args.action == "show"     ? show(common, args)
                        : args.action == "verify" ? check(common, args)
                        : args.action == "link"   ? print_link(common, args)
                                                  : write_copy(common, args);
  return status ? done : report(status.error());
}

}  // namespace

void add_snapshot(Commands& commands) {
  const auto [command, args] = commands.add<SnapshotArgs>(
      "snapshot", "Show, check or export the evidence collected for a case", snapshot_command);
  command.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* sub = command.add_subcommand(name, what);
    sub->fallthrough();
    sub->callback([&args = args, name] { args.action = name; });
    sub->add_option("file", args.file, "A snapshot, .tar.gz")->required();
    return sub;
  };
  add("show", "Show the contents of a snapshot and why it was taken");
  add("verify", "Check the manifest, all sizes and all checksums");
  CLI::App* copy = add("export", "Make a copy without secrets, for a vendor");
  copy->add_option("-o,--out", args.out, "File for the copy")->required();
  copy->add_option("--redact", args.redact, "YAML file: how to redact names and addresses");
  copy->add_option("--mapping", args.mapping,
                   "File for the mapping of replaced names; keep it private");
  CLI::App* link = command.add_subcommand(
      "link", "Print a signed link by which a vendor may fetch the redacted copy from a service");
  link->fallthrough();
  link->callback([&args = args] { args.action = "link"; });
  link->add_option("id", args.file, "Of the snapshot, as /v1/snapshots lists it")->required();
  link->add_option("--key", args.key, "The service's vendor: key_file")->required();
  link->add_option("--service", args.service, "https://HOST[:PORT] by which the vendor reaches it")
      ->required();
  link->add_option("--days", args.days, "How long it is valid")
      ->check(CLI::Range(std::int64_t{1}, vendor_days_max))
      ->capture_default_str();
}

}  // namespace weft::cli
