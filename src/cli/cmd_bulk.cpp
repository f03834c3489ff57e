#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "cli/backbone_args.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/backbone/bulk.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

namespace backbone = plan::backbone;

struct BulkArgs {
  BackboneArgs wan;
  std::string page, transfers, background, day, slot = "15 min", objective = "peaks", gap = "0.5",
                                                known, plan;
  std::uint32_t slots = 96, k = 3;
  std::size_t rows = 20;
  bool store = false;
};

Result<backbone::BulkOptions> read_options(const BulkArgs& args) {
  backbone::BulkOptions out{.paths = args.k, .store = args.store};
  WEFT_TRY(out.objective,
           from_name<backbone::BulkObjective>({args.objective, {"--objective", 0, 0}}));
  WEFT_TRY(const double percent, parse_number({args.gap, {"--gap", 0, 0}}));
  if (!(percent >= 0.0001 && percent <= 50))
    return fail(Errc::value, {"--gap", 0, 0}, "a gap below 0.0001 % or above 50 %",
                "pass e.g. --gap 0.1, in percent");
  out.gap = percent / 100;
  WEFT_TRY(const Duration slot, parse_duration({args.slot, {"--slot", 0, 0}}));
  if (slot.seconds() < 1)
    return fail(Errc::value, {"--slot", 0, 0}, "a slot below 1 s", "pass e.g. --slot \"15 min\"");
  out.slots = {.count = args.slots, .seconds = slot.seconds()};
  return out;
}

Result<backbone::BulkAnswer> plan(const BulkArgs& args, const backbone::Wan& wan,
                                  const std::vector<backbone::Transfer>& transfers,
                                  const backbone::BulkOptions& options) {
  backbone::Loads loads(wan.link_count() * options.slots.count, 0.0);
  std::vector<backbone::Loads> history;
  if (!args.background.empty()) {
    WEFT_TRY(const std::string text, backbone::read_text(args.background));
    WEFT_TRY(const auto series, backbone::read_series(text, args.background, wan));
    WEFT_TRY(loads, backbone::background(series, args.day, wan, options.slots));
    if (!args.known.empty() && !args.day.empty())
      for (const std::string& day : backbone::days_before(series, args.day, options.slots)) {
        WEFT_TRY(backbone::Loads one, backbone::background(series, day, wan, options.slots));
        history.push_back(std::move(one));
      }
  }
  if (args.known.empty()) return backbone::plan_bulk(wan, transfers, loads, options);
  WEFT_TRY(const auto known, from_name<backbone::Known>({args.known, {"--replay", 0, 0}}));
  return backbone::replay_bulk(wan, transfers, loads, history, known, options);
}

Status run_bulk(const Common& common, const BulkArgs& args) {
  WEFT_TRY(const backbone::BulkOptions options, read_options(args));
  WEFT_TRY(const backbone::WanFile file, load_backbone(common, args.wan));
  WEFT_TRY(const std::string text, backbone::read_text(args.transfers));
  WEFT_TRY(const auto transfers,
           backbone::read_transfers(text, args.transfers, file.wan, options.slots));
  WEFT_TRY(const backbone::BulkAnswer answer, plan(args, file.wan, transfers, options));
  if (!args.plan.empty())
    WEFT_TRY_STATUS(write_file(args.plan, backbone::write_plan(file.wan, transfers, answer)));
  const std::string json = backbone::to_json(file.wan, transfers, answer, options);
  const std::string table = backbone::to_table(file.wan, transfers, answer, options, args.rows);
  fmt::print("{}", common.json ? json : table);
  if (args.page.empty()) return {};
  return write_file(args.page,
                    plan::report::page_text(
                        {.title = std::filesystem::path(args.wan.topology).stem().string(),
                         .command = "bulk",
                         .table = table,
                         .data = {{"bulk-data", json},
                                  {"bulk-plan", plan_json(file.wan, transfers, answer, options)},
                                  {"sites-data", sites_json(file.wan)}}}));
}

}  // namespace

void add_bulk(Commands& commands) {
  const auto [c, args] =
      commands.add<BulkArgs>("bulk", "Bulk transfers over a backbone, off its peaks", run_bulk);
  c.add_option("topology", args.wan.topology, "GraphML, SNDlib XML or CSV of links")->required();
  c.add_option("--transfers", args.transfers, "CSV of transfers")->required();
  c.add_option("--background", args.background, "CSV of measured matrices");
  c.add_option("--day", args.day, "What the times of that day begin with; else all intervals");
  c.add_option("--slots", args.slots, "Slots of the day")->check(CLI::Range(1, 10'000));
  c.add_option("--slot", args.slot, "Length of a slot");
  c.add_option("--objective", args.objective, "peaks (their sum) or mlu");
  c.add_option("--k", args.k, "Paths, or trees, of each transfer")->check(CLI::Range(1, 64));
  c.add_option("--gap", args.gap, "Percent from the optimum at which to stop");
  c.add_option("--replay", args.known,
               "Plan again in every slot on a forecast; transfers known day_ahead or at release");
  c.add_flag("--store", args.store, "Sites between may hold data for later slots")
      ->excludes("--replay");
  c.add_option("--capacity", args.wan.capacity,
               "Of cables that state none; several: drawn by --seed")
      ->delimiter(',');
  c.add_option("--rows", args.rows, "Rows of the table");
  c.add_option("--plan", args.plan, "CSV to write the plan to");
  c.add_option("--page", args.page, "HTML file: the day of links and transfers, map of links");
  c.add_option("--sites", args.wan.sites, "CSV of id, lon, lat: places for the map")
      ->needs("--page");
}

}  // namespace weft::cli
