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
constexpr Duration te_sees_max = 86'400_s;

std::string read_scheme(Reader& reader, std::string fallback) {
  const std::string name = reader.text("scheme", fallback);
  if (find_scheme(name) != nullptr) return name;
  const std::vector<std::string> names = scheme_names();
  reader.error(Errc::unknown, reader.where("scheme"),
               fmt::format("unknown routing scheme \"{}\"{}", name, did_you_mean(name, names)),
               fmt::format("choose one of {}", fmt::join(names, ", ")));
  return fallback;
}

void read_convergence(const Config& section, RoutingConfig& config, Errors& errors) {
  Reader reader(section, "routing.convergence", errors);
  RoutingConfig::Convergence& out = config.convergence.emplace(RoutingConfig::Convergence{});
  const auto read = [&](const char* key, Duration& value) {
    value = reader.duration(key, value);
    if (value < Duration{} || value > te_sees_max)
      reader.error(Errc::value, reader.where(key),
                   fmt::format("convergence cannot take {}", to_text(value)),
                   "give a time from 0 to 1 day");
  };
  read("detect", out.detect);
  read("bgp", out.bgp);
  read("compute", out.compute);
  read("install", out.install);
  if (out.bgp < out.detect)
    reader.error(Errc::value, reader.where("bgp"),
                 fmt::format("routes cannot change after {}, before the link's own switch has "
                             "noticed ({})",
                             to_text(out.bgp), to_text(out.detect)),
                 "both count from the failure: set bgp to detect or more");
  reader.finish();
}

void read_te(const Config& section, RoutingConfig& config, Errors& errors) {
  Reader reader(section, "routing.te", errors);
  if (const auto& heard = config.convergence; heard && config.scheme == "te")
    config.te_sees = heard->detect + heard->compute + heard->install;
  config.te_sees = reader.duration("sees", config.te_sees);
  if (config.te_sees < Duration{} || config.te_sees > te_sees_max)
    reader.error(
        Errc::value, reader.where("sees"),
        fmt::format("a controller cannot see the state of {} ago", to_text(config.te_sees)),
        "give a time from 0 to 1 day; Meta's controller works every 30 s");
  config.te_split = reader.flag("split", config.te_split);
  if (config.te_split && config.qps % 2 != 0)
    reader.error(Errc::value, reader.where("split"),
                 fmt::format("{} cannot be divided into pairs of QPs",
                             config.qps == 1 ? "1 QP" : fmt::format("{} QPs", config.qps)),
                 "set routing.qps to an even number, e.g. qps: 2");
  const std::array<std::string, 2> lives{"live", "dead"};
  config.te_dead = reader.choice("controller", lives, 0) == 1;
  if (config.te_dead && reader.has("sees"))
    reader.error(Errc::value, reader.where("sees"), "a dead controller does not react to failures",
                 "remove one of sees and controller: dead");
  config.te_lease = reader.duration("lease", config.te_lease);
  if (config.te_lease <= Duration{} || config.te_lease > te_sees_max)
    reader.error(Errc::value, reader.where("lease"),
                 fmt::format("marks cannot hold for {}", to_text(config.te_lease)),
                 "give a time above 0, up to 1 day");
  reader.finish();
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
  const Config* const convergence = reader.child("convergence");
  if (convergence != nullptr) read_convergence(*convergence, config, errors);
  const Config* const te = reader.child("te");
  read_te(te != nullptr ? *te : Config::map(section.where), config, errors);
  reader.finish();
  return config;
}

}  // namespace weft::route
