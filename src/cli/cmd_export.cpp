#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/formats/build_fabric.hpp"
#include "model/formats/containerlab.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/formats/graph_export.hpp"
#include "model/formats/kubernetes.hpp"
#include "model/formats/slurm.hpp"

namespace weft::cli {
namespace {

struct ExportArgs {
  std::string fabric, format, out = "-";
};

struct Format {
  std::string_view name;
  Result<std::string> (*write)(const model::Fabric&);
};

constexpr std::array<Format, 8> formats{{
    {"yaml", [](const model::Fabric& f) -> Result<std::string> { return to_fabric_yaml(f); }},
    {"dot", [](const model::Fabric& f) -> Result<std::string> { return to_dot(f); }},
    {"graphml", [](const model::Fabric& f) -> Result<std::string> { return to_graphml(f); }},
    {"slurm", [](const model::Fabric& f) { return to_slurm_topology(f); }},
    {"slurm-blocks", [](const model::Fabric& f) { return to_slurm_blocks(f); }},
    {"kueue", [](const model::Fabric& f) { return to_kueue(f); }},
    {"volcano", [](const model::Fabric& f) { return to_volcano(f); }},
    {"containerlab", [](const model::Fabric& f) { return to_containerlab(f); }},
}};

int export_command(const Common& common, const ExportArgs& args) {
  std::vector<std::string> names;
  for (const Format& format : formats) names.emplace_back(format.name);
  const auto format = std::ranges::find(formats, args.format, &Format::name);
  if (format == formats.end())
    return report(
        {Errc::unknown,
         {"--to", 0, 0},
         fmt::format("unknown format \"{}\"{}", args.format, did_you_mean(args.format, names)),
         fmt::format("choose one of: {}", fmt::join(names, ", ")),
         {}});
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.fabric, *options);
  if (!file) return report(file.error());
  const auto fabric = model::build_fabric(file->variants.front().section("fabric"));
  if (!fabric) return report(fabric.error());
  const auto text = format->write(*fabric);
  if (!text) return report(text.error());
  if (const Status written = write_file(args.out, *text); !written) {
    report(written.error());
    return work_failed;
  }
  return done;
}

}  // namespace

void add_export(Commands& commands) {
  const auto [c, args] =
      commands.add<ExportArgs>("export", "Write a fabric in another format", export_command);
  c.add_option("fabric", args.fabric, "Scenario or fabric file")->required();
  c.add_option("--to", args.format,
               "yaml, dot, graphml, slurm, slurm-blocks, kueue, volcano or "
               "containerlab")
      ->required();
  c.add_option("-o,--out", args.out, "File; - for standard output");
}

}  // namespace weft::cli
