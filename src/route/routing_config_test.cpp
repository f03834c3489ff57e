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
  CHECK(!none.scheme_given);
  CHECK(none.qps == 1);
  CHECK(none.message_mode == MessageMode::split);
  CHECK(none.hash == "mix64");
  CHECK(!none.same_hash_seed);
  CHECK(!none.weighted);
  CHECK(none.flowlet_gap == 100_us);
  CHECK(none.entropies == 0);
  CHECK(none.paths == 4);
  const Outcome all = read(
      "{scheme: e_ecmp, qps: 16, message_mode: round_robin, hash: crc32, seeds: equal, "
      "weighted: true, flowlet_gap: 50 us, entropies: 128, paths: 8}");
  CHECK(all.errors == "");
  CHECK(all.config.scheme == "e_ecmp");
  CHECK(all.config.scheme_given);
  CHECK(all.config.qps == 16);
  CHECK(all.config.message_mode == MessageMode::round_robin);
  CHECK(all.config.hash == "crc32");
  CHECK(all.config.same_hash_seed);
  CHECK(all.config.weighted);
  CHECK(all.config.flowlet_gap == 50_us);
  CHECK(all.config.entropies == 128);
  CHECK(all.config.paths == 8);
}

TEST_CASE("routing: every scheme of the registry is accepted") {
  for (const std::string& name : scheme_names()) {
    const Outcome outcome = read("scheme: " + name);
    CHECK(outcome.errors == "");
    CHECK(outcome.config.scheme == name);
  }
}

TEST_CASE("routing: what is refused, and how") {
  CHECK(read("{scheme: ecmpp}").errors ==
        "s.yaml:1:10: unknown routing scheme \"ecmpp\" (did you mean \"ecmp\"?); choose one of "
        "ecmp, e_ecmp, pinned, spray, optimal, minimal, valiant, ugal, ugal_g, flowlet, adaptive, "
        "reps, multipath, te\n");
  CHECK(read("{scheme: te, te: {sees: 2 weeks}}").errors.starts_with("s.yaml:1:25: "));
  CHECK(read("{scheme: te, te: {sees: 172800 s}}").errors.starts_with("s.yaml:1:25: a controller"));
  CHECK(read("{scheme: te}").config.te_lease == 3_s);
  CHECK(read("{scheme: te, te: {lease: 500 ms}}").config.te_lease == 500'000_us);
  CHECK(read("{scheme: te, te: {lease: 0 s}}").errors.starts_with("s.yaml:1:26: marks cannot"));
  CHECK(read("{scheme: te, te: {seen: 10 s}}").errors.starts_with("s.yaml:1:19: "));
  CHECK(read("{scheme: te, te: {sees: 10 s}}").config.te_sees == 10_s);
  CHECK(!read("{scheme: te, qps: 2}").config.te_split);
  CHECK(read("{scheme: te, qps: 2, te: {split: true}}").config.te_split);
  CHECK(read("{scheme: te, te: {split: true}}")
            .errors.starts_with("s.yaml:1:26: 1 QP cannot be divided into pairs of QPs"));
  const RoutingConfig slow =
      read("{scheme: te, convergence: {detect: 2 ms, install: 5 ms}}").config;
  REQUIRE(slow.convergence.has_value());
  CHECK(slow.te_sees == slow.convergence->detect + slow.convergence->compute + 5'000_us);
  CHECK(read("{scheme: te, convergence: {}, te: {sees: 1 s}}").config.te_sees == 1_s);
  CHECK(read("{scheme: e_ecmp, convergence: {}}").config.te_sees == Duration{});
  CHECK(!read("{scheme: te}").config.convergence);
  CHECK(read("{te: {controller: dead}}").config.te_dead);
  for (const char* yaml : {"{convergence: {bgp: 1 us}}", "{convergence: {detect: 2 weeks}}",
                           "{convergence: {ospf: 1 s}}", "{convergence: 1 s}",
                           "{te: {controller: ill}}", "{te: {controller: dead, sees: 1 s}}"}) {
    CAPTURE(yaml);
    CHECK(read(yaml).errors.starts_with("s.yaml:1:"));
  }
  for (const char* yaml :
       {"{qps: 0}", "{qps: -1}", "{qps: 4097}", "{qps: many}", "{qps: [1]}", "{message_mode: both}",
        "{hash: md5}", "{seeds: none}", "{weighted: 2}", "{scheme: [ecmp]}", "{qp: 4}", "[ecmp]",
        "ecmp", "{flowlet_gap: 50}", "{flowlet_gap: -1 us}", "{entropies: 65537}", "{paths: 0}",
        "{paths: 257}"}) {
    CAPTURE(yaml);
    CHECK(read(yaml).errors.starts_with("s.yaml:1:"));
  }
  // All at once.
  const std::string many = read("{scheme: x, qps: 0, hash: y, speed: 3}").errors;
  CHECK(std::ranges::count(many, '\n') == 4);
}

TEST_CASE("routing: where each scheme means something, and how a router takes those of packets") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 4}");
  const std::map<std::string, std::string> plain_of{
      {"flowlet", "e_ecmp"}, {"adaptive", "spray"}, {"reps", "spray"}, {"multipath", "ecmp"}};
  for (const std::string& name : scheme_names()) {
    const bool by_packet = plain_of.contains(name);
    CHECK((engine_of(name) == SchemeEngine::packet) == by_packet);
    CHECK((engine_of(name) == SchemeEngine::fluid) == (name == "optimal"));
    if (!by_packet) continue;
    Router router = make_router(fabric, {.scheme = name, .qps = 4});
    Router plain = make_router(fabric, {.scheme = plain_of.at(name), .qps = 4});
    CHECK(router.stream_count() == plain.stream_count());
    for (std::uint32_t qp = 0; qp < 4; ++qp) {
      const Stream stream{fabric.nics().front(), fabric.nics().back(), qp};
      CHECK(path_of(router, stream) == path_of(plain, stream));
    }
  }
}

TEST_CASE("a router refuses what its fabric does not allow") {
  const Fabric clos = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  const auto refusal = [&](const RoutingConfig& config) {
    const auto router = Router::create(clos, config, 1);
    return router ? Errc::io : router.error().code;
  };
  for (const char* scheme : {"minimal", "valiant", "ugal", "ugal_g"})
    CHECK(refusal({.scheme = scheme}) == Errc::unsupported);
  CHECK(refusal({.scheme = "te"}) == Errc::io);  // accepted
  CHECK(refusal({.scheme = "x"}) == Errc::unknown);
  CHECK(refusal({.hash = "x"}) == Errc::unknown);
  CHECK(refusal({.qps = 0}) == Errc::value);
  CHECK(refusal({.scheme = "pinned", .weighted = true}) == Errc::infeasible);
  CHECK(refusal({.scheme = "optimal", .weighted = true}) == Errc::io);  // accepted
}

}  // namespace
}  // namespace weft::route
