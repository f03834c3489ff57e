#include <algorithm>
#include <initializer_list>

#include "base/text.hpp"
#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

using testing::Bench;

const std::string& at(const Config& config, std::initializer_list<std::string_view> path) {
  const Config* here = &config;
  for (const std::string_view key : path) {
    here = here->kind == Config::Kind::list ? &here->items.front() : here->find(key);
    REQUIRE_MESSAGE(here != nullptr, key);
  }
  return here->text;
}

TEST_CASE("OpenSLO: a service, and an SLO for each threshold") {
  const Settings settings = testing::settings_of(
      "objectives: [{name: z, scope: zone, class: \"46\", loss: 0.05 %, latency_p99: 200 us, "
      "target: 99.95 %, window: 28 d}, {name: r, scope: rack-internal, window: 90 min}]");
  std::vector<Config> documents;
  const std::string text = to_openslo(settings);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find("---\n", start), text.size());
    const auto document = parse_yaml(text.substr(start, end - start), "openslo.yaml");
    REQUIRE_MESSAGE(document.has_value(), (document ? "" : document.error().text()));
    documents.push_back(*document);
    start = end + 4;
  }
  REQUIRE(documents.size() == 6);
  for (const Config& document : documents) CHECK(at(document, {"apiVersion"}) == "openslo/v1");
  CHECK(at(documents[0], {"kind"}) == "Service");
  const Config& loss = documents[1];
  CHECK(at(loss, {"kind"}) == "SLO");
  CHECK(at(loss, {"metadata", "name"}) == "z-loss");
  CHECK(at(loss, {"spec", "service"}) == at(documents[0], {"metadata", "name"}));
  CHECK(at(loss, {"spec", "budgetingMethod"}) == "Timeslices");
  CHECK(at(loss, {"spec", "timeWindow", "", "duration"}) == "28d");
  CHECK(at(loss, {"spec", "timeWindow", "", "isRolling"}) == "true");
  CHECK(at(loss, {"spec", "objectives", "", "target"}) == "0.9995");
  CHECK(at(loss, {"spec", "objectives", "", "timeSliceTarget"}) == "0.9995");
  CHECK(at(loss, {"spec", "objectives", "", "timeSliceWindow"}) == "1m");
  const std::string& query = at(
      loss, {"spec", "indicator", "spec", "ratioMetric", "bad", "metricSource", "spec", "query"});
  CHECK(query == R"(sum(weft_sli_probes_lost_total{objective="z",entity="all",class="46"}))");
  CHECK(at(documents[2], {"metadata", "name"}) == "z-corruption");
  CHECK(at(documents[2], {"spec", "objectives", "", "timeSliceTarget"}) == "0.99999");
  CHECK(at(documents[3], {"metadata", "name"}) == "z-latency");
  CHECK(at(documents[3], {"spec", "objectives", "", "timeSliceTarget"}) == "0.99");
  CHECK(at(documents[4], {"metadata", "name"}) == "r-loss");
  CHECK(at(documents[5], {"metadata", "name"}) == "r-corruption");
  CHECK(at(documents[4], {"spec", "timeWindow", "", "duration"}) == "90m");
}

TEST_CASE("metrics: each family once, values by label, odd class names escaped") {
  Bench bench("objectives: [{name: z, scope: zone}]");
  bench.add({{.minute = 0, .lost = 900, .traffic_class = "a\"b\\c\nd"},
             {.minute = 1, .traffic_class = "a\"b\\c\nd"}});
  const std::string text = to_metrics(bench.report(), bench.book);
  const auto has = [&](std::string_view line) {
    for (const std::string_view each : split(text, '\n'))
      if (each == line) return true;
    return false;
  };
  INFO(text);
  CHECK(has("# TYPE weft_sli_minutes gauge"));
  CHECK(has("# TYPE weft_sli_probes_lost_total counter"));
  CHECK(has(R"(weft_sli_minutes{objective="z",class="a\"b\\c\nd",entity="all",verdict="good"} 1)"));
  CHECK(has(R"(weft_sli_minutes{objective="z",class="a\"b\\c\nd",)"
            R"(entity="zone:0",verdict="bad_loss"} 1)"));
  CHECK(has(R"(weft_sli_availability{objective="z",class="a\"b\\c\nd",entity="all"} 0.5)"));
  CHECK(has(R"(weft_sli_probes_lost_total{objective="z",class="a\"b\\c\nd",entity="all"} 900)"));
}

}  // namespace
}  // namespace weft::observe::sli
