// `routing:` of a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "route/hash.hpp"
#include "route/router.hpp"
#include "route/scheme.hpp"

namespace weft::route {
namespace {

// NCCL opens at most 128 QPs per connection; the bounds only keep sizes sane.
constexpr std::int64_t qp_count_max = 4096, path_count_max = 256;
// Of the UDP source port.
constexpr std::int64_t entropy_count_max = 65'536;

std::string read_scheme(Reader& reader, std::string fallback) {
  const std::string name = reader.text("scheme", fallback);
  if (find_scheme(name) != nullptr) return name;
  const std::vector<std::string> names = scheme_names();
  if (name == "te") {
    reader.error(Errc::unsupported, reader.where("scheme"),
                 "routing scheme \"te\" is not available in this version", "use e_ecmp or optimal");
  } else {
    reader.error(Errc::unknown, reader.where("scheme"),
                 fmt::format("unknown routing scheme \"{}\"{}", name, did_you_mean(name, names)),
                 fmt::format("choose one of {}", fmt::join(names, ", ")));
  }
  return fallback;
}

}  // namespace

RoutingConfig read_routing(const Config& section, Errors& errors) {
  const std::vector<std::string> hashes = hash_names();
  const std::array<std::string, 2> modes{"split", "round_robin"};
  const std::array<std::string, 2> seeds{"per_switch", "equal"};
  Reader reader(section, "routing", errors);
  RoutingConfig config;
  config.where = section.where;
  config.scheme = read_scheme(reader, config.scheme);
  config.scheme_given = reader.has("scheme");
  config.qps = static_cast<std::uint32_t>(reader.count("qps", config.qps, 1, qp_count_max));
  config.message_mode = static_cast<MessageMode>(reader.choice("message_mode", modes, 0));
  config.hash = hashes[reader.choice("hash", hashes, 0)];
  config.same_hash_seed = reader.choice("seeds", seeds, 0) == 1;
  config.weighted = reader.flag("weighted", config.weighted);
  config.flowlet_gap = reader.duration("flowlet_gap", config.flowlet_gap);
  config.entropies =
      static_cast<std::uint32_t>(reader.count("entropies", config.entropies, 0, entropy_count_max));
  config.paths = static_cast<std::uint32_t>(reader.count("paths", config.paths, 1, path_count_max));
  reader.finish();
  return config;
}

}  // namespace weft::route
