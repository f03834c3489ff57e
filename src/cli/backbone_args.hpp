// What `weft te` and `weft bulk` read of a backbone.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "plan/backbone/wan.hpp"

namespace weft::cli {

struct BackboneArgs {
  std::string topology, sites;
  std::vector<std::string> capacity;
};

inline Result<plan::backbone::WanFile> load_backbone(const Common& common,
                                                     const BackboneArgs& args) {
  plan::backbone::WanOptions options{.capacity = {}, .seed = common.seed.value_or(1)};
  for (const std::string& text : args.capacity) {
    WEFT_TRY(const Rate rate, parse_rate({text, {"--capacity", 0, 0}}));
    options.capacity.push_back(rate);
  }
  WEFT_TRY(plan::backbone::WanFile out, plan::backbone::load_wan(args.topology, options));
  if (args.sites.empty()) return out;
  WEFT_TRY(const std::string text, plan::backbone::read_text(args.sites));
  WEFT_TRY_STATUS(plan::backbone::read_places(text, args.sites, out.wan));
  return out;
}

}  // namespace weft::cli
