#include "model/scenario/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

namespace weft::model {
namespace {

using ConfigKind = Config::Kind;

// Every top-level key and what may stand behind it; null is allowed everywhere.
struct TopKey {
  std::string_view name;
  std::string_view wanted;
  std::array<ConfigKind, 2> kinds;
};
constexpr std::array<TopKey, 14> top_keys{{
    {"name", "a text", {ConfigKind::scalar, ConfigKind::scalar}},
    {"fabric", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"routing", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"transport", "a name, or a map of keys", {ConfigKind::scalar, ConfigKind::map}},
    {"collectives", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"inference", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"jobs", "a list of jobs, each a map", {ConfigKind::list, ConfigKind::list}},
    {"faults", "a list of faults, each a map", {ConfigKind::list, ConfigKind::list}},
    {"compare", "a map from variant names to overlays", {ConfigKind::map, ConfigKind::map}},
    {"sweep", "a map from keys to lists of values", {ConfigKind::map, ConfigKind::map}},
    {"spares", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"life", "a map of keys", {ConfigKind::map, ConfigKind::map}},
    {"engine", "a name, or a map with one", {ConfigKind::scalar, ConfigKind::map}},
    {"seed", "a whole number", {ConfigKind::scalar, ConfigKind::scalar}},
}};

bool is_variant_key(std::string_view key) { return key != "compare" && key != "sweep"; }

std::vector<std::string> all_keys() {
  std::vector<std::string> names;
  for (const TopKey& key : top_keys) names.emplace_back(key.name);
  return names;
}

std::vector<std::string> variant_keys() {
  std::vector<std::string> names = all_keys();
  std::erase_if(names, [](const std::string& key) { return !is_variant_key(key); });
  return names;
}

// Checks names and kinds of the keys of `map`, of which only `allowed` may occur.
void check_keys(const Config& map, std::span<const std::string> allowed, std::string_view what,
                Errors& errors) {
  for (const Config::Field& field : map.fields) {
    if (std::ranges::find(allowed, field.key) == allowed.end()) {
      const bool exists = std::ranges::find(top_keys, field.key, &TopKey::name) != top_keys.end();
      errors.push_back({Errc::unknown,
                        field.where,
                        exists ? fmt::format("\"{}\" is not used in {}", field.key, what)
                               : fmt::format("unknown key \"{}\" in {}{}", field.key, what,
                                             did_you_mean(field.key, allowed)),
                        fmt::format("known keys: {}", fmt::join(allowed, ", ")),
                        {}});
      continue;
    }
    const TopKey& key = *std::ranges::find(top_keys, field.key, &TopKey::name);
    const ConfigKind kind = field.value.kind;
    if (kind != ConfigKind::null && std::ranges::find(key.kinds, kind) == key.kinds.end())
      errors.push_back({Errc::parse,
                        field.value.where,
                        fmt::format("\"{}\" must be {}", field.key, key.wanted),
                        {},
                        {}});
  }
}

struct Setting {
  std::string path;
  Config value;
};

Result<std::vector<Setting>> parse_settings(const LoadOptions& options) {
  std::vector<Setting> settings;
  Errors errors;
  for (const auto& [path, text] : options.set) {
    auto value = parse_yaml(text, fmt::format("--set {}={}", path, text));
    if (value) {
      settings.push_back({path, *std::move(value)});
    } else {
      errors.push_back(value.error());
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return settings;
}

// `engine: NAME` and `transport: NAME` are short for {name: NAME}.
constexpr std::array<std::string_view, 2> named_sections{"engine", "transport"};

// Keys that are laid on the section stand beside its name, and do not take its place.
void write_out_name(Config& root, std::string_view section) {
  Config* const given = root.find(section);
  if (given == nullptr || given->kind != ConfigKind::scalar) return;
  Config map = Config::map(given->where);
  map.at_or_add("name") = std::move(*given);
  *given = std::move(map);
}

Status set_key(Config& root, std::string_view path, const Config& value) {
  for (const std::string_view section : named_sections)
    if (path.size() > section.size() && path.starts_with(section) && path[section.size()] == '.')
      write_out_name(root, section);
  return set_path(root, path, value);
}

void lay_variant(Config& root, const Config& over) {
  for (const std::string_view section : named_sections)
    if (const Config* keys = over.find(section);
        keys != nullptr && keys->kind == ConfigKind::map && !keys->is_replacement)
      write_out_name(root, section);
  overlay(root, over);
}

void apply(Config& config, const std::vector<Setting>& settings, Errors& errors) {
  for (const Setting& setting : settings)
    if (auto status = set_key(config, setting.path, setting.value); !status)
      errors.push_back(status.error());
}

// What --set says about a section that is left out would say nothing.
void refuse_unread(const std::vector<Setting>& settings, const LoadOptions& options,
                   Errors& errors) {
  for (const Setting& setting : settings) {
    const std::string key = setting.path.substr(0, setting.path.find('.'));
    if (options.keys.empty() || !is_variant_key(key) ||
        std::ranges::find(options.keys, key) != options.keys.end())
      continue;
    errors.push_back({Errc::unsupported,
                      {fmt::format("--set {}", setting.path), 0, 0},
                      fmt::format("this command does not read \"{}\"", key),
                      fmt::format("it reads {}", fmt::join(options.keys, ", ")),
                      {}});
  }
}

Result<std::uint64_t> read_seed(const Config& root, const LoadOptions& options) {
  if (options.seed) return *options.seed;
  const Config* seed = root.find("seed");
  if (seed == nullptr || seed->kind == ConfigKind::null) return 1;
  WEFT_TRY(const std::int64_t value, parse_count(token_of(*seed)));
  return static_cast<std::uint64_t>(value);
}

// Takes the keys with dots out of a variant: "jobs.0.place" sets one key, where a list would have
// to be written out whole.
std::vector<Setting> take_paths(Config& over) {
  std::vector<Setting> paths;
  std::erase_if(over.fields, [&](Config::Field& field) {
    if (field.key.find('.') == std::string::npos) return false;
    paths.push_back({field.key, std::move(field.value)});
    return true;
  });
  return paths;
}

// One variant: `base` with `over` laid on it, then its keys with dots and, on top of all, the
// command line's settings.
void add_variant(const std::string& name, const Config& base, Config over,
                 const std::vector<Setting>& settings, const LoadOptions& options,
                 ScenarioFile& out, Errors& errors) {
  Scenario scenario{name, base.where.file, base, 1};
  const std::vector<Setting> paths = take_paths(over);
  check_keys(over, variant_keys(), fmt::format("variant \"{}\"", name), errors);
  lay_variant(scenario.root, over);
  for (const Setting& setting : paths) {
    auto status = set_key(scenario.root, setting.path, setting.value);
    if (!status) status.error().where = setting.value.where;
    if (!status) errors.push_back(status.error());
  }
  if (!paths.empty()) check_keys(scenario.root, variant_keys(), "a variant", errors);
  apply(scenario.root, settings, errors);
  if (auto seed = read_seed(scenario.root, options)) {
    scenario.seed = *seed;
  } else {
    errors.push_back(seed.error());
  }
  out.variants.push_back(std::move(scenario));
}

void add_variants(const Config& compare, const Config& base, const std::vector<Setting>& settings,
                  const LoadOptions& options, ScenarioFile& out, Errors& errors) {
  if (compare.fields.empty())
    errors.push_back({Errc::value,
                      compare.where,
                      "\"compare\" has no variants",
                      "add \"name: {...}\" lines, or remove the key",
                      {}});
  for (const Config::Field& variant : compare.fields) {
    const bool is_map =
        variant.value.kind == ConfigKind::map || variant.value.kind == ConfigKind::null;
    if (!is_map || variant.key.empty()) {
      errors.push_back(
          {Errc::parse,
           variant.value.where,
           fmt::format("variant \"{}\" must be a name with a map of keys", variant.key),
           "write \"name: {}\" for the unchanged scenario",
           {}});
      continue;
    }
    const bool is_empty = variant.value.kind == ConfigKind::null;
    const Config over = is_empty ? Config::map() : variant.value;
    add_variant(variant.key, base, over, settings, options, out, errors);
  }
}

// Removes the field and returns it; null where missing.
Config take(Config& root, std::string_view key) {
  Config out;
  if (Config* found = root.find(key)) out = std::move(*found);
  std::erase_if(root.fields, [&](const Config::Field& field) { return field.key == key; });
  return out;
}

Status fail_on(Errors& errors) {
  if (errors.empty()) return {};
  return std::unexpected(combine(std::move(errors)));
}

void refuse_replacements(const Config& config, Errors& errors) {
  if (config.is_replacement)
    errors.push_back({Errc::parse,
                      config.where,
                      "!replace has a meaning in a variant under \"compare:\" alone",
                      "remove the tag",
                      {}});
  for (const Config& item : config.items) refuse_replacements(item, errors);
  for (const Config::Field& field : config.fields) refuse_replacements(field.value, errors);
}

}  // namespace

const Config& Scenario::section(std::string_view key) const {
  static const Config missing;
  const Config* found = root.find(key);
  return found == nullptr ? missing : *found;
}

Status Scenario::set(std::string_view path, const Config& value) {
  WEFT_TRY_STATUS(set_key(root, path, value));
  Errors errors;
  check_keys(root, variant_keys(), "a variant", errors);
  for (Error& error : errors) error.where = value.where;  // all else was checked before
  WEFT_TRY_STATUS(fail_on(errors));
  if (path != "seed") return {};
  WEFT_TRY(seed, read_seed(root, {}));
  return {};
}

Result<ScenarioFile> read_scenario(Config root, const std::string& file,
                                   const LoadOptions& options) {
  if (root.kind != ConfigKind::map)
    return fail(Errc::parse, {file, std::max(root.where.line, 1u), std::max(root.where.column, 1u)},
                "a scenario must be a map of keys", "start with \"fabric: {generator: ...}\"");
  root.where.file = file;
  WEFT_TRY(std::vector<Setting> settings, parse_settings(options));
  Errors errors;
  for (const Config::Field& section : root.fields)
    if (section.key != "compare") refuse_replacements(section.value, errors);
  apply(root, settings, errors);
  check_keys(root, all_keys(), "this file", errors);
  WEFT_TRY_STATUS(fail_on(errors));
  refuse_unread(settings, options, errors);
  WEFT_TRY_STATUS(fail_on(errors));
  if (!options.keys.empty())
    std::erase_if(root.fields, [&](const Config::Field& field) {
      return std::ranges::find(options.keys, field.key) == options.keys.end();
    });

  ScenarioFile out;
  const Config compare = take(root, "compare");
  out.sweep = take(root, "sweep");
  std::erase_if(settings, [](const Setting& s) {
    return !is_variant_key(std::string_view(s.path).substr(0, s.path.find('.')));
  });
  if (compare.kind == ConfigKind::null) {
    add_variant("base", root, Config::map(), {}, options, out, errors);
  } else {
    add_variants(compare, root, settings, options, out, errors);
  }
  WEFT_TRY_STATUS(fail_on(errors));
  return out;
}

Result<ScenarioFile> parse_scenario(std::string_view text, const std::string& file,
                                    const LoadOptions& options) {
  WEFT_TRY(Config root, parse_yaml(text, file, YamlTags::replace));
  return read_scenario(std::move(root), file, options);
}

Result<ScenarioFile> load_scenario(const std::string& path, const LoadOptions& options) {
  WEFT_TRY(Config root, load_yaml(path, YamlTags::replace));
  // ASTRA-sim's network files are fabrics and nothing else.
  if (root.find("topology") != nullptr && root.find("npus_count") != nullptr) {
    Config fabric = Config::map(root.where);
    fabric.at_or_add("file") =
        Config::scalar(std::filesystem::path(path).filename().string(), {path, 1, 1});
    root = Config::map(root.where);
    root.at_or_add("fabric") = std::move(fabric);
  }
  return read_scenario(std::move(root), path, options);
}

}  // namespace weft::model
