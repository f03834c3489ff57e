#include "operate/repair/policy.hpp"

#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

std::string refusal(std::string_view yaml) {
  auto config = parse_yaml(yaml, "policy.yaml");
  REQUIRE(config.has_value());
  const auto policy = read_policy(*config);
  return policy ? "accepted" : policy.error().text();
}

TEST_CASE("the default policy acts on cables and switches, and leaves the rest to people") {
  const Policy policy = default_policy();
  for (const CauseKind kind : {CauseKind::flap, CauseKind::optic, CauseKind::link}) {
    CHECK(policy.problem(kind).mode == Mode::automatic);
    CHECK(policy.problem(kind).drain == DrainTarget::cable);
  }
  for (const CauseKind kind : {CauseKind::device, CauseKind::rack_device}) {
    CHECK(policy.problem(kind).mode == Mode::automatic);
    CHECK(policy.problem(kind).drain == DrainTarget::device);
    CHECK(policy.problem(kind).acts_early);
  }
  for (const CauseKind kind : {CauseKind::nic, CauseKind::host, CauseKind::power, CauseKind::zone,
                               CauseKind::config, CauseKind::congestion}) {
    CHECK(policy.problem(kind).mode == Mode::propose);
    CHECK(policy.problem(kind).drain == DrainTarget::none);
  }
  CHECK(policy.problem(CauseKind::link).slo_ns[2] == 5 * ns_per_minute);
}

TEST_CASE("a file changes single keys; defaults reach all problem types that do not differ") {
  const Policy policy = policy_with(
      "{defaults: {confidence: 0.9, slo: {drain: 7 s}}, problems: {optic: {confidence: 0.5}}}");
  CHECK(policy.problem(CauseKind::link).confidence == 0.9);
  CHECK(policy.problem(CauseKind::optic).confidence == 0.5);
  CHECK(policy.problem(CauseKind::optic).slo_ns[2] == 7 * ns_per_s);
  CHECK(policy.problem(CauseKind::optic).mode == Mode::automatic);
  CHECK(policy.timing.blocked_ns == 30 * ns_per_s);
}

TEST_CASE("an empty file or section means the default policy") {
  const auto file = parse_yaml("policy:\n", "serve.yaml");
  REQUIRE(file.has_value());
  const auto of_section = read_policy(*file->find("policy"));
  REQUIRE_MESSAGE(of_section.has_value(), (of_section ? "" : of_section.error().text()));
  const Policy expected = default_policy();
  for (const Policy& policy : {*of_section, policy_with(""), policy_with("# all as it is\n")}) {
    CHECK(policy.problems.size() == expected.problems.size());
    CHECK(policy.problem(CauseKind::optic).mode == expected.problem(CauseKind::optic).mode);
    CHECK(policy.guards.rack_share == expected.guards.rack_share);
    CHECK(policy.timing.blocked_ns == expected.timing.blocked_ns);
  }
}

TEST_CASE("freezes are read") {
  const Policy policy = policy_with(
      "{freezes: [{from: 2026-12-23T00:00:00Z, until: 2027-01-02T00:00:00Z, why: holidays}]}");
  REQUIRE(policy.freezes.size() == 1);
  CHECK(policy.freezes[0].why == "holidays");
  CHECK(policy.freezes[0].until.ns - policy.freezes[0].from.ns ==
        std::int64_t{10} * 24 * 60 * ns_per_minute);
}

TEST_CASE("mistakes are told with their place and the nearest name") {
  CHECK(contains(refusal("{problem: {}}"), "did you mean \"problems\"?"));
  CHECK(contains(refusal("{problems: {cabel: {}}}"), "did you mean \"cable\"?"));
  CHECK(contains(refusal("problems:\n  cable: {mode: atuo}\n"), "policy.yaml:2:"));
  CHECK(contains(refusal("{problems: {cable: {mod: auto}}}"), "did you mean \"mode\"?"));
  CHECK(contains(refusal("{guards: {rack_share: 1.5}}"), "rack_share"));
  CHECK(contains(refusal("{timing: {confirm: 0 s}}"), "is outside 1 ms to 90 d"));
  CHECK(contains(refusal("{timing: {confirm: 3}}"), "unit"));
  CHECK(contains(refusal("{freezes: {}}"), "not a list"));
  CHECK(contains(refusal("{freezes: [{from: 2026-01-02T00:00:00Z, until: 2026-01-01T00:00:00Z}]}"),
                 "ends before it begins"));
  CHECK(
      contains(refusal("freezes:\n  - {from: 2026-01-02T00:00:00Z, until: 2226-01-01T00:00:00Z}\n"),
               "2226-01-01T00:00:00Z is out of range"));
  CHECK(contains(refusal("{retries: {acts: 0}}"), "acts"));
}

TEST_CASE("a wrong default is told once") {
  const std::string text = refusal("{defaults: {confidence: 2}}");
  CHECK(text.find("confidence") == text.rfind("confidence"));
}

}  // namespace
}  // namespace weft::operate::repair
