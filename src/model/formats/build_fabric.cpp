#include "model/formats/build_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/formats/astra_network.hpp"
#include "model/formats/cable_list.hpp"
#include "model/formats/cabling.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/formats/graph_export.hpp"
#include "model/formats/ibnetdiscover.hpp"
#include "model/formats/slurm.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

struct Row {
  std::string_view name;
  Result<Fabric> (*generate)(const Config& section);
};

// One row per generator.
constexpr std::array<Row, 9> registry{{
    {"ai_zone", generate_ai_zone},
    {"three_tier", generate_three_tier},
    {"hpn", generate_hpn},
    {"fat_tree", generate_fat_tree},
    {"rail_optimized", generate_rail_optimized},
    {"rail_only", generate_rail_only},
    {"multi_plane", generate_multi_plane},
    {"dragonfly", generate_dragonfly},
    {"torus", generate_torus},
}};

constexpr int file_depth_max = 8;  // fabric files that refer to fabric files

Result<Fabric> build(const Config& section, int depth);

// A tree of switches from Slurm; the keys beside `file` say what the file does not.
Result<Fabric> read_slurm(Reader& reader, const std::string& path, Errors& errors) {
  const CommonKeys common = read_common(reader, {});
  SlurmOptions options{common.host, common.link, {}, common.latency, {}};
  if (reader.has("uplink")) options.uplink = read_rate(reader, "uplink", common.link);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(const std::string text, read_named_file(reader.where("file"), path));
  WEFT_TRY(Fabric fabric, read_slurm_topology(text, path, options));
  WEFT_TRY_STATUS(check_radix(fabric, common.radix, reader.where("radix")));
  return fabric;
}

Result<Fabric> read_graph(Reader& reader, const std::string& path, Errors& errors) {
  const GraphmlOptions options{reader.rate("rate", Rate{}), {}};
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(const std::string text, read_named_file(reader.where("file"), path));
  return read_graphml(text, path, options);
}

// A list of cables; the keys beside `file` say what it does not. Hosts have as many NICs as most
// have there, unless a key or a host file says how many.
Result<Fabric> build_cabled(const Config& section, Result<Cabling> cabling) {
  Config whole = section;
  const Config* host = section.find("host");
  const bool is_preset = host == nullptr || !host->text.ends_with(".xml");
  if (cabling && is_preset && section.find("nics_per_host") == nullptr)
    whole.at_or_add("nics_per_host") =
        Config::scalar(std::to_string(std::max(1u, usual_nic_count(*cabling))), section.where);
  Errors errors;
  Reader reader(whole, "fabric", errors);
  if (reader.text("file", std::string{}).ends_with(".csv")) reader.child("roles");
  if (reader.has("link"))
    reader.error(Errc::value, reader.where("link"), "the rates of links are those of the file",
                 "remove the key; \"rate\" is for cables without one");
  const CommonKeys common = read_common(reader, {});
  const Rate rate = reader.rate("rate", Rate{});
  reader.finish();
  if (!cabling) errors.push_back(cabling.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(Fabric fabric, build_cabled_fabric(*cabling, {common.host, rate, common.latency, {}}));
  WEFT_TRY_STATUS(check_radix(fabric, common.radix, reader.where("radix")));
  return fabric;
}

Result<Fabric> read_cable_csv(const Config& section, const std::string& path,
                              std::string_view text) {
  Errors errors;
  CableListOptions options{.nics_per_host = peek_count(section, "nics_per_host", 0)};
  std::string roles;
  if (section.find("roles") != nullptr) {
    Reader reader(section, "fabric", errors);
    const Where where = reader.where("roles");
    options.roles_file = resolve_path(where, reader.text("roles", std::nullopt));
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    WEFT_TRY(roles, read_named_file(where, options.roles_file));
    options.roles = roles;
  }
  return build_cabled(section, read_cable_list(text, path, options));
}

Result<Fabric> read_fabric_file(const Config& section, int depth) {
  Errors errors;
  Reader reader(section, "fabric", errors);
  const std::string path = resolve_path(reader.where("file"), reader.text("file", std::nullopt));
  if (path.ends_with(".conf")) return read_slurm(reader, path, errors);
  if (path.ends_with(".graphml")) return read_graph(reader, path, errors);
  const Result<std::string> text = read_named_file(reader.where("file"), path);
  if (text && (path.ends_with(".ibnet") || is_ibnetdiscover(*text)))
    return build_cabled(section, read_ibnetdiscover(*text, path));
  if (text && path.ends_with(".csv")) return read_cable_csv(section, path, *text);
  // Which keys there may be depends on what the file is.
  if (!text && errors.empty() && !path.ends_with(".yaml")) return std::unexpected(text.error());
  reader.finish();
  if (!text) errors.push_back(text.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (depth == file_depth_max)
    return fail(Errc::infeasible, reader.where("file"),
                fmt::format("fabric files refer to each other more than {} deep", file_depth_max),
                "refer to the file that describes the fabric");
  WEFT_TRY(const Config document, parse_yaml(*text, path));
  if (is_astra_network(document)) return build_astra_network(document);
  const Config* inner = document.find("fabric");
  if (inner == nullptr)
    return fail(
        Errc::parse, {path, 1, 1}, "the file has no \"fabric\" section",
        "use a scenario, an exported fabric (YAML or *.graphml), a Slurm topology (*.conf), "
        "the output of ibnetdiscover (*.ibnet), a list of cables (*.csv) or an ASTRA-sim "
        "network");
  return build(*inner, depth + 1);
}

Result<Fabric> run_generator(const Config& section, const Config& name) {
  const std::vector<std::string> known = generator_names();
  const auto row = std::ranges::find(registry, name.text, &Row::name);
  if (row != registry.end()) return row->generate(section);
  return fail(Errc::unknown, name.where,
              fmt::format("unknown generator \"{}\"{}", name.text, did_you_mean(name.text, known)),
              fmt::format("choose one of {}", fmt::join(known, ", ")));
}

Result<Fabric> build(const Config& section, int depth) {
  if (const Config* name = section.find("generator")) return run_generator(section, *name);
  if (section.find("file") != nullptr) return read_fabric_file(section, depth);
  if (section.find("nodes") != nullptr) return read_fabric_nodes(section);
  return fail(Errc::parse, section.where,
              "\"fabric\" must be a map with \"generator\", \"file\" or \"nodes\"",
              fmt::format("write e.g. fabric: {{generator: NAME}} with one of {}",
                          fmt::join(generator_names(), ", ")));
}

}  // namespace

std::vector<std::string> generator_names() {
  std::vector<std::string> names;
  for (const Row& row : registry) names.emplace_back(row.name);
  return names;
}

Result<Fabric> build_fabric(const Config& section) { return build(section, 0); }

}  // namespace weft::model
