#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "cli/cli.hpp"
#include "model/explain.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {

int explain_command(const Common& common, const ExplainArgs& args) {
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.file, *options);
  if (!file) return report(file.error());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  if (!setup) return report(setup.error());
  const model::FabricFacts facts = model::explain(setup->fabric);
  const std::string effective = to_yaml(scenario.root);
  Digest digest;
  digest.add(std::string_view(effective));
  if (common.json) {
    using Json = nlohmann::ordered_json;
    Json out{{"scenario", effective},
             {"scenario_digest", digest.hex()},
             {"seed", scenario.seed},
             {"faults", setup->fault_lines},
             {"fabric", Json::parse(model::to_json(facts))}};
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return done;
  }
  fmt::print("# effective scenario \"{}\", digest {}\n{}\n", scenario.name, digest.hex(),
             effective);
  fmt::print("{}", model::to_table(facts));
  for (const std::string& line : setup->fault_lines) fmt::print("fault: {}\n", line);
  for (const std::string& line : setup->notes) fmt::print("note: {}\n", line);
  return done;
}

}  // namespace weft::cli
