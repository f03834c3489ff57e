#include "model/scenario/scenario.hpp"

#include "base/rng.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using testing::contains;

Result<ScenarioFile> parse_file(std::string_view text, const LoadOptions& options = {}) {
  return parse_scenario(text, "s.yaml", options);
}

std::string scenario_refusal(std::string_view text, const LoadOptions& options = {}) {
  const auto file = parse_file(text, options);
  return file ? "accepted" : file.error().text();
}

std::string value_at(const Config& root, std::string_view section, std::string_view key) {
  const Config* map = root.find(section);
  const Config* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "(none)" : value->text;
}

TEST_CASE("a file without compare is one variant called base") {
  const auto file =
      parse_file("fabric: {generator: ai_zone}\nseed: 7\nsweep: {fabric.racks: [1, 2]}\n");
  REQUIRE(file.has_value());
  REQUIRE(file->variants.size() == 1);
  const Scenario& s = file->variants[0];
  CHECK(s.name == "base");
  CHECK(s.file == "s.yaml");
  CHECK(s.seed == 7);
  CHECK(value_at(s.root, "fabric", "generator") == "ai_zone");
  CHECK(s.root.find("sweep") == nullptr);
  CHECK(file->sweep.find("fabric.racks")->items.size() == 2);
  CHECK(s.section("fabric").kind == Config::Kind::map);
  CHECK(s.section("jobs").kind == Config::Kind::null);
}

TEST_CASE("the seed is 1 unless given") {
  CHECK(parse_file("fabric: {}")->variants[0].seed == 1);
  CHECK(parse_file("seed: ~")->variants[0].seed == 1);
  LoadOptions options;
  options.seed = 42;
  CHECK(parse_file("seed: 7", options)->variants[0].seed == 42);
}

TEST_CASE("variants overlay key by key, in file order; null removes") {
  const auto file = parse_file(
      "fabric: {generator: ai_zone, racks: 4}\n"
      "routing: {scheme: e_ecmp, qps: 16}\n"
      "jobs: [{name: a}, {name: b}]\n"
      "compare:\n"
      "  z: {routing: {scheme: ecmp}}\n"
      "  a: {}\n"
      "  nothing:\n"
      "  fewer: {jobs: [{name: c}], routing: {qps: ~}, seed: 9}\n");
  REQUIRE(file.has_value());
  REQUIRE(file->variants.size() == 4);
  CHECK(file->variants[0].name == "z");
  CHECK(value_at(file->variants[0].root, "routing", "scheme") == "ecmp");
  CHECK(value_at(file->variants[0].root, "routing", "qps") == "16");
  CHECK(value_at(file->variants[1].root, "routing", "scheme") == "e_ecmp");
  CHECK(file->variants[2].section("jobs").items.size() == 2);
  CHECK(file->variants[3].section("jobs").items.size() == 1);
  CHECK(value_at(file->variants[3].root, "routing", "qps") == "(none)");
  CHECK(file->variants[3].seed == 9);
  CHECK(file->variants[0].seed == 1);
  for (const Scenario& s : file->variants) CHECK(s.root.find("compare") == nullptr);
}

TEST_CASE("null removes however the key is written") {
  const auto file = parse_file(
      "routing: {scheme: e_ecmp, qps: 16}\n"
      "jobs: [{name: a, repeat: 3}]\n"
      "compare:\n"
      "  map: {routing: {qps: null}}\n"
      "  dotted: {routing.qps: null, jobs.0.repeat: ~}\n"
      "  not there: {engine: {threads: null}, transport.window: null}\n");
  REQUIRE(file.has_value());
  CHECK(to_yaml(file->variants[0].section("routing")) == "{scheme: e_ecmp}\n");
  CHECK(to_yaml(file->variants[1].root) == "{routing: {scheme: e_ecmp}, jobs: [{name: a}]}\n");
  CHECK(to_yaml(file->variants[2].section("engine")) == "{}\n");
  CHECK(file->variants[2].root.find("transport") == nullptr);
  LoadOptions options;
  options.set = {{"jobs.0.repeat", "null"}, {"routing.qps", "~"}};
  const auto set = parse_file(
      "routing: {qps: 16}\njobs: [{name: a, repeat: 3}]\n"
      "compare: {a: {}, b: {routing: {qps: 4}}}\n",
      options);
  REQUIRE(set.has_value());
  for (const Scenario& s : set->variants)
    CHECK(to_yaml(s.root) == "{routing: {}, jobs: [{name: a}]}\n");
}

TEST_CASE("a map under !replace does not merge") {
  const auto file = parse_file(
      "fabric: {generator: ai_zone, racks: 4, host: {gpus: 8, nics: 8}}\n"
      "compare:\n"
      "  same: {}\n"
      "  hpn: {fabric: !replace {generator: hpn, segments: 1}}\n"
      "  inside: {fabric: {host: !replace {gpus: 4}}}\n"
      "  new: {routing: !replace {scheme: spray}}\n");
  REQUIRE(file.has_value());
  CHECK(to_yaml(file->variants[0].root) ==
        "{fabric: {generator: ai_zone, racks: 4, host: {gpus: 8, nics: 8}}}\n");
  CHECK(to_yaml(file->variants[1].root) == "{fabric: {generator: hpn, segments: 1}}\n");
  CHECK(to_yaml(file->variants[2].root) ==
        "{fabric: {generator: ai_zone, racks: 4, host: {gpus: 4}}}\n");
  CHECK(value_at(file->variants[3].root, "routing", "scheme") == "spray");
  CHECK(contains(scenario_refusal("fabric: !replace {racks: 4}"),
                 "s.yaml:1:9: !replace has a meaning in a variant"));
  CHECK(contains(scenario_refusal("fabric: {}\nsweep: {fabric: [!replace {racks: 4}]}"),
                 "s.yaml:2:18: !replace has a meaning in a variant"));
  CHECK(contains(scenario_refusal("compare: {a: {seed: !replace 4}}"), "has no meaning here"));
  CHECK(contains(scenario_refusal("compare: {a: {fabric: !replaced {}}}"), "has no meaning here"));
}

TEST_CASE("--set holds in every variant") {
  LoadOptions options;
  options.set = {{"routing.qps", "4"}, {"jobs.0.bytes", "1 MiB"}, {"compare.b.seed", "5"}};
  const auto file = parse_file(
      "routing: {qps: 16}\njobs: [{name: a, bytes: 2 MiB}]\n"
      "compare: {a: {routing: {qps: 1}}, b: {}}\n",
      options);
  REQUIRE(file.has_value());
  for (const Scenario& s : file->variants) {
    CHECK(value_at(s.root, "routing", "qps") == "4");
    CHECK(s.section("jobs").items[0].find("bytes")->text == "1 MiB");
  }
  CHECK(file->variants[0].seed == 1);
  CHECK(file->variants[1].seed == 5);
}

TEST_CASE("--set can add sections, hold YAML, and turn the comparison off") {
  LoadOptions options;
  options.set = {{"fabric", "{generator: hpn}"}, {"compare", "~"}};
  const auto file = parse_file("compare: {a: {}, b: {}}\n", options);
  REQUIRE(file.has_value());
  REQUIRE(file->variants.size() == 1);
  CHECK(file->variants[0].name == "base");
  CHECK(value_at(file->variants[0].root, "fabric", "generator") == "hpn");
}

TEST_CASE("mistakes at the top level come all at once") {
  const std::string text = scenario_refusal(
      "fabrik: {}\nrouting: ecmp\njobs: {a: 1}\nseed: [1]\nsweep: 3\nengine: [fluid]\n");
  for (const char* const part :
       {"s.yaml:1:1: unknown key \"fabrik\" in this file (did you mean \"fabric\"?)",
        "s.yaml:2:10: \"routing\" must be a map of keys", "s.yaml:3:7: \"jobs\" must be a list",
        "s.yaml:4:7: \"seed\" must be a whole number", "s.yaml:5:8: \"sweep\" must be a map",
        "s.yaml:6:9: \"engine\" must be a name"})
    CHECK_MESSAGE(contains(text, part), text);
}

TEST_CASE("engine and transport may be names") {
  const auto file = parse_file("engine: packet\ntransport: nscc\n");
  REQUIRE(file.has_value());
  CHECK(file->variants[0].section("transport").text == "nscc");
  CHECK(contains(scenario_refusal("transport: [nscc]"),
                 "\"transport\" must be a name, or a map of keys"));
}

TEST_CASE("keys laid on a section that is a name stand beside the name") {
  LoadOptions options;
  options.set = {{"engine.threads", "2"}};
  const auto file = parse_file(
      "engine: packet\ntransport: nscc\ncompare:\n"
      "  a: {}\n  b: {transport: {pfc: true}}\n  c: {transport.pfc: true}\n"
      "  d: {engine: fluid, transport: !replace {pfc: true}}\n",
      options);
  REQUIRE(file.has_value());
  const auto& variants = file->variants;
  CHECK(variants[0].section("transport").text == "nscc");
  for (const std::size_t both : {1u, 2u}) {
    CHECK(value_at(variants[both].root, "transport", "name") == "nscc");
    CHECK(value_at(variants[both].root, "transport", "pfc") == "true");
    CHECK(value_at(variants[both].root, "engine", "name") == "packet");
    CHECK(value_at(variants[both].root, "engine", "threads") == "2");
  }
  CHECK(value_at(variants[3].root, "transport", "name") == "(none)");
  CHECK(value_at(variants[3].root, "engine", "name") == "fluid");
}

TEST_CASE("mistakes in variants") {
  CHECK(contains(scenario_refusal("compare: {}"), "has no variants"));
  CHECK(contains(scenario_refusal("compare: [a, b]"), "must be a map from variant names"));
  CHECK(contains(scenario_refusal("compare: {a: 3}"), "variant \"a\" must be"));
  CHECK(contains(scenario_refusal("compare: {a: {compare: {}}}"),
                 "\"compare\" is not used in variant \"a\""));
  CHECK(contains(scenario_refusal("compare: {a: {rooting: {}}}"), "did you mean \"routing\"?"));
  CHECK(
      contains(scenario_refusal("compare: {a: {routing: 5}}"), "s.yaml:1:24: \"routing\" must be"));
}

TEST_CASE("wrong settings and seeds") {
  LoadOptions options;
  options.set = {{"seed.x", "1"}, {"routing..qps", "2"}, {"jobs.9.a", "3"}};
  const std::string text = scenario_refusal("seed: 3\njobs: []\n", options);
  CHECK(contains(text, "--set seed.x=1:1:1: cannot set \"seed.x\""));
  CHECK(contains(text, "empty name"));
  CHECK(contains(text, "not an index below 0"));
  options.set = {{"routing", "{a"}};
  CHECK(contains(scenario_refusal("seed: 3", options), "--set routing={a"));
  CHECK(contains(scenario_refusal("seed: -3"), "negative"));
  CHECK(contains(scenario_refusal("seed: 1.5"), "not a whole number"));
}

TEST_CASE("a command that reads some keys leaves out the others, and still checks them") {
  LoadOptions options;
  options.keys = {"fabric", "seed"};
  const auto file = parse_file("fabric: {}\nseed: 2\njobs: []\ncompare: {a: {}}\n", options);
  REQUIRE(file.has_value());
  REQUIRE(file->variants.size() == 1);
  CHECK(file->variants[0].name == "base");
  CHECK(file->variants[0].root.find("jobs") == nullptr);
  CHECK(contains(scenario_refusal("fabric: {}\njob: []\n", options), "unknown key \"job\""));
}

TEST_CASE("what is no scenario at all") {
  CHECK(contains(scenario_refusal(""), "must be a map"));
  CHECK(contains(scenario_refusal("just text"), "must be a map"));
  CHECK(contains(scenario_refusal("[1, 2]"), "must be a map"));
  CHECK(contains(scenario_refusal("fabric: {"), "s.yaml:"));
  CHECK_FALSE(load_scenario("/nonexistent/s.yaml", {}).has_value());
}

TEST_CASE("random edits of a scenario's text are read or refused") {
  const std::string good =
      "fabric: {generator: ai_zone, racks: 4}\nrouting: {scheme: ecmp}\njobs:\n  - {name: a}\n"
      "compare: {a: {seed: 2}, b: {routing: {qps: 4}}}\nsweep: {fabric.racks: [1, 2]}\n";
  constexpr std::string_view alphabet = "{}[]:,-~#&*!|>'\"%@ \n\tax0";
  Rng rng(5);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::uint64_t i = 1 + rng.below(4); i-- > 0;) {
      const std::size_t at = rng.below(text.size());
      if (rng.below(2) == 0) {
        text[at] = alphabet[rng.below(alphabet.size())];
      } else {
        text.erase(at, 1 + rng.below(5));
      }
    }
    const auto file = parse_file(text);
    read += file.has_value() ? 1 : 0;
    if (file) CHECK_FALSE(file->variants.empty());
    if (!file) CHECK_FALSE(file.error().what.empty());
  }
  CHECK(read > 100);
  CHECK(read < 2900);
}

}  // namespace
TEST_CASE("a variant may set single keys by their path, inside lists too") {
  const auto file = parse_scenario(
      "fabric: {generator: ai_zone}\njobs: [{name: a, gpus: 8}]\n"
      "compare: {x: {jobs.0.gpus: 16, routing.qps: 4}, y: {}}\n",
      "s.yaml", {});
  REQUIRE(file.has_value());
  CHECK(file->variants[0].section("jobs").items[0].find("gpus")->text == "16");
  CHECK(file->variants[0].section("routing").find("qps")->text == "4");
  CHECK(file->variants[1].section("jobs").items[0].find("gpus")->text == "8");
  const auto wrong = parse_scenario(
      "jobs: [{name: a}]\ncompare: {x: {jobs.3.gpus: 16, rooting.qps: 4}}\n", "s.yaml", {});
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().text().find("s.yaml:2:28") != std::string::npos);
  CHECK(wrong.error().text().find("rooting") != std::string::npos);
}

}  // namespace weft::model
