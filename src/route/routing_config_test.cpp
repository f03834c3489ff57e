#include <doctest/doctest.h>

#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

struct Outcome {
  RoutingConfig config;
  std::string errors;
};
Outcome read(std::string_view yaml) {
  const auto section = parse_yaml(yaml, "s.yaml");
  REQUIRE(section.has_value());
  Errors errors;
  Outcome outcome{read_routing(*section, errors), ""};
  for (const Error& error : errors) outcome.errors += error.text() + "\n";
  return outcome;
}

TEST_CASE("routing: defaults, and every key") {
  Errors errors;
  const RoutingConfig none = read_routing(Config{}, errors);
  CHECK(errors.empty());
  CHECK(none.scheme == "ecmp");
  CHECK(none.qps == 1);
  CHECK(none.message_mode == MessageMode::split);
  CHECK(none.hash == "mix64");
  CHECK(!none.equal_seeds);
  CHECK(!none.weighted);
  const Outcome all = read(
      "{scheme: e_ecmp, qps: 16, message_mode: round_robin, hash: crc32, seeds: equal, "
      "weighted: true}");
  CHECK(all.errors == "");
  CHECK(all.config.scheme == "e_ecmp");
  CHECK(all.config.qps == 16);
  CHECK(all.config.message_mode == MessageMode::round_robin);
  CHECK(all.config.hash == "crc32");
  CHECK(all.config.equal_seeds);
  CHECK(all.config.weighted);
}

TEST_CASE("routing: every scheme of the registry is accepted") {
  for (const std::string& name : scheme_names()) {
    const Outcome outcome = read("scheme: " + name);
    CHECK(outcome.errors == "");
    CHECK(outcome.config.scheme == name);
  }
}

TEST_CASE("routing: what is refused, and how") {
  CHECK(
      read("{scheme: ecmpp}").errors ==
      "s.yaml:1:10: no routing scheme is called \"ecmpp\" (did you mean \"ecmp\"?); choose one of "
      "ecmp, e_ecmp, pinned, spray, optimal, minimal, valiant, ugal, ugal_g\n");
  CHECK(read("{scheme: flowlet}").errors ==
        "s.yaml:1:10: routing scheme \"flowlet\" is not available in this version; use e_ecmp or "
        "spray\n");
  for (const char* name : {"adaptive", "te"})
    CHECK(read(std::string("scheme: ") + name).errors.find("not available") != std::string::npos);
  for (const char* yaml : {"{qps: 0}", "{qps: -1}", "{qps: 4097}", "{qps: many}", "{qps: [1]}",
                           "{message_mode: both}", "{hash: md5}", "{seeds: none}", "{weighted: 2}",
                           "{scheme: [ecmp]}", "{qp: 4}", "[ecmp]", "ecmp"}) {
    CAPTURE(yaml);
    CHECK(read(yaml).errors.starts_with("s.yaml:1:"));
  }
  // All at once.
  const std::string many = read("{scheme: x, qps: 0, hash: y, speed: 3}").errors;
  CHECK(std::ranges::count(many, '\n') == 4);
}

TEST_CASE("a router refuses what its fabric does not allow") {
  const Fabric clos = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  const auto refusal = [&](const RoutingConfig& config) {
    const auto router = Router::create(clos, config, 1);
    return router ? Errc::io : router.error().code;
  };
  for (const char* scheme : {"minimal", "valiant", "ugal", "ugal_g"})
    CHECK(refusal({.scheme = scheme}) == Errc::unsupported);
  CHECK(refusal({.scheme = "x"}) == Errc::unknown);
  CHECK(refusal({.hash = "x"}) == Errc::unknown);
  CHECK(refusal({.qps = 0}) == Errc::value);
  CHECK(refusal({.scheme = "pinned", .weighted = true}) == Errc::infeasible);
  CHECK(refusal({.scheme = "optimal", .weighted = true}) == Errc::io);  // accepted
}

}  // namespace
}  // namespace weft::route
