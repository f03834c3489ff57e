#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "adapt/live/system_clock.hpp"
#include "app/store/backup.hpp"
#include "app/store/fabric_mark.hpp"
#include "app/store/open_store.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/scenario/scenario.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

struct StoreArgs {
  std::string action;  // the sub-command
  std::string file;
  std::string store;
  std::string snapshots;
  bool is_replaced = false;
};

std::string contents_text(const app::StoreContents& contents) {
  std::string out = fmt::format(
      "store: {} (the last is number {}), {}\ndocuments:", counted(contents.events, "event"),
      contents.last_event, counted(contents.audit, "line") + " of audit");
  for (const app::KindCount& one : contents.documents)
    out += fmt::format(" {} {}", one.count, one.kind);
  return out + (contents.documents.empty() ? " none\n" : "\n");
}

std::string manifest_text(const app::BackupManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const app::BackupSnapshot& one : manifest.snapshots) bytes += one.bytes;
  std::string out =
      fmt::format("taken: {} by weft {}\n{}snapshots: {}, {}\n", to_text(manifest.taken),
                  manifest.weft, contents_text(manifest.store), manifest.snapshots.size(),
                  human(Bytes{static_cast<std::int64_t>(bytes)}));
  if (!manifest.missing.empty())
    out += fmt::format(
        "not found: {} that the store names, e.g. {}; the service removes old ones to make room\n",
        counted(manifest.missing.size(), "snapshot"), manifest.missing.front());
  return out;
}

void print_manifest(const Common& common, const app::BackupManifest& manifest, JsonObject more) {
  if (common.json)
    fmt::print("{}\n", more.add_all(to_object(manifest)).text());
  else
    fmt::print("{}", manifest_text(manifest));
}

Status back_up(const Common& common, const StoreArgs& args) {
  WEFT_TRY(const auto image, app::open_store_image(args.store));
  WEFT_TRY(const app::BackupManifest manifest,
           app::back_up(*image, args.file,
                        {.snapshots = args.snapshots,
                         .weft = WEFT_VERSION,
                         .now = adapt::live::SystemClock().wall()}));
  print_manifest(common, manifest, JsonObject().add("file", args.file));
  return {};
}

Status restore(const Common& common, const StoreArgs& args) {
  WEFT_TRY(const app::Restored restored,
           app::restore(args.file,
                        {.store = args.store,
                         .snapshots = args.snapshots,
                         .if_used = args.is_replaced ? port::IfUsed::replace : port::IfUsed::refuse,
                         .now = adapt::live::SystemClock().wall()}));
  print_manifest(common, restored.manifest,
                 JsonObject().add("file", args.file).add("replaced", restored.replaced));
  if (!restored.replaced.empty() && !common.json)
    fmt::print("the store that was there is now {}\n", restored.replaced);
  return {};
}

Status show(const Common& common, const StoreArgs& args) {
  if (args.file.empty() == args.store.empty())
    return fail(Errc::value, {}, "give either a backup or --store",
                "weft store info FILE, or weft store info --store STORE");
  if (args.store.empty()) {
    WEFT_TRY(const app::BackupManifest manifest, app::check_backup(args.file));
    print_manifest(common, manifest, JsonObject().add("file", args.file));
    return {};
  }
  WEFT_TRY(const auto image, app::open_store_image(args.store));
  WEFT_TRY(const app::StoreContents contents, app::contents_of(*image));
  if (common.json)
    fmt::print("{}\n", write_fields(contents));
  else
    fmt::print("{}", contents_text(contents));
  return {};
}

// From now on the store is that of this fabric. Also where it was before: it may have been smaller.
Status accept(const Common& common, const StoreArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.file, options));
  const model::Scenario& scenario = file.variants.front();
  WEFT_TRY(const plan::Setup setup, plan::read_setup(scenario));
  const Config* name = scenario.root.find("name");
  const app::FabricMark mark = app::mark_of(setup.fabric, name == nullptr ? "" : name->text);
  WEFT_TRY(const auto store, app::open_existing_store(args.store));
  WEFT_TRY_STATUS(store->claim());
  WEFT_TRY_STATUS(
      app::check_fabric(*store, mark, app::IfChanged::accept, adapt::live::SystemClock().wall()));
  if (common.json)
    fmt::print("{}\n", JsonObject().add("name", mark.name).add("parts", mark.parts.size()).text());
  else
    fmt::print("the store is that of {} with {}\n",
               mark.name.empty() ? "a fabric without a name" : quote(mark.name),
               counted(mark.parts.size(), "part"));
  return {};
}

int store_command(const Common& common, const StoreArgs& args) {
  const Status status = args.action == "backup"    ? back_up(common, args)
                        : args.action == "restore" ? restore(common, args)
                        : args.action == "accept"  ? accept(common, args)
                                                   : show(common, args);
  if (status) return done;
  const int out = report(status.error());
  return status.error().code == Errc::io ? work_failed : out;
}

}  // namespace

void add_store(Commands& commands) {
  const auto [command, args] = commands.add<StoreArgs>(
      "store", "Back up the store of a service with its snapshots, restore it, show what is in it",
      store_command);
  command.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* sub = command.add_subcommand(name, what);
    sub->fallthrough();
    sub->callback([&args = args, name] { args.action = name; });
    return sub;
  };
  CLI::App* backup = add("backup", "Write a new file; the service may go on meanwhile");
  backup->add_option("file", args.file, "The backup, e.g. weft.tar")->required();
  backup->add_option("--store", args.store, "As of weft serve")->required();
  backup->add_option("--snapshots", args.snapshots,
                     "Directory of the snapshots, where it is not the one that the store names");
  CLI::App* back = add("restore", "Fill a new store from a backup, while no service uses it");
  back->add_option("file", args.file, "The backup")->required();
  back->add_option("--store", args.store, "As of weft serve; either database")->required();
  back->add_option("--snapshots", args.snapshots, "Directory for the snapshots of the backup");
  back->add_flag("--replace", args.is_replaced,
                 "Also where there is a store: a SQLite file is renamed, tables are emptied");
  CLI::App* fabric =
      add("accept", "Open the store with this fabric from now on, although the one before differs");
  fabric->add_option("file", args.file, "Scenario or fabric file, as of weft serve")->required();
  fabric->add_option("--store", args.store, "As of weft serve")->required();
  CLI::App* info = add("info", "Check a backup and show what is in it, or in a store");
  info->add_option("file", args.file, "The backup");
  info->add_option("--store", args.store, "As of weft serve");
}

}  // namespace weft::cli
