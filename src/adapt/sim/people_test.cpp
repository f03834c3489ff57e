#include "adapt/sim/people.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "model/formats/test_fabric.hpp"

namespace weft::adapt::sim {
namespace {

using Kind = People::Word::Kind;

constexpr Timestamp first_day{1'800'000'000 * ns_per_s};
constexpr std::int64_t an_hour = 3600 * ns_per_s;
constexpr const char* watched_cable = "rtsw:0--ctsw:1";

struct PeopleBench {
  model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}");
  Operations net{fabric,
                 {.visit_least_ns = ns_per_s, .visit_mean_ns = ns_per_s, .nothing_found = 0},
                 first_day};
  People people{net, {.approve_mean_ns = 60 * ns_per_s}};

  void break_cable() {
    const auto part = model::find_entity(fabric, {watched_cable, {}});
    REQUIRE(part.has_value());
    net.begin(FaultKind::cable, *part);
  }
  // As the service writes it; `more`: further keys of the repair.
  void tell(const char* event, std::string_view repair, std::string_view more = "") {
    const std::string body =
        fmt::format(R"({{"case":"C","repair":{{"id":"{}","root":"{}","part":"{}"{}}}}})", repair,
                    watched_cable, watched_cable, more);
    REQUIRE(people.notify({"1", net.now(), event, "C", "", body}).has_value());
  }
  std::vector<People::Word> pass(std::int64_t ns) {
    net.advance({net.now().ns + ns});
    return people.words();
  }
};

TEST_CASE("who mends a part says so to each open repair of it, told of by whatever notice") {
  PeopleBench bench;
  bench.break_cable();
  bench.tell("case_opened", "R1");
  CHECK(bench.pass(an_hour).empty());  // nobody was sent
  bench.tell("repair_drained", "R2");
  const auto words = bench.pass(an_hour);
  REQUIRE(words.size() == 2);
  CHECK(words[0].repair == "R1");
  CHECK(words[1].repair == "R2");
  CHECK(words[0].kind == Kind::repaired);
  CHECK(bench.net.broken().empty());
  CHECK(bench.net.visit_count() == 1);
}

TEST_CASE("who finds nothing is sent again until the repair is over") {
  PeopleBench bench;  // nothing is broken
  bench.tell("repair_drained", "R1");
  CHECK(bench.pass(an_hour).empty());
  CHECK(bench.pass(an_hour).empty());
  CHECK(bench.net.visit_count() == 2);
  for (const char* last : {"repair_closed", "case_closed", "repair_overdue"}) {
    bench.tell(last, "R1", R"(,"stage":"closed","ended":"2027-01-15T10:00:00Z")");
    bench.pass(an_hour);
    const auto visits = bench.net.visit_count();
    CHECK(bench.pass(an_hour).empty());
    CHECK(bench.net.visit_count() == visits);
    bench.tell("repair_drained", "R1", R"(,"ended":null)");
  }
}

TEST_CASE("proposals are approved after a while; of an offender the part is replaced") {
  PeopleBench bench;
  bench.tell("repair_proposed", "R1");
  REQUIRE(bench.people.next_due().has_value());
  const Timestamp due = *bench.people.next_due();
  CHECK(due > first_day);
  const auto words = bench.pass(due.ns - first_day.ns);
  REQUIRE(words.size() == 1);
  CHECK(words[0].kind == Kind::approve);
  CHECK(words[0].repair == "R1");
  CHECK_FALSE(bench.people.next_due().has_value());
  CHECK(bench.people.replaced().empty());
  bench.tell("repair_replace", "R1", R"(,"is_offender":true)");
  CHECK(bench.people.replaced() == std::set<std::string>{watched_cable});
}

TEST_CASE("notices without a repair are errors, notices of other things are not read") {
  PeopleBench bench;
  const auto notify = [&](const char* event, const char* body) {
    return bench.people.notify({"1", first_day, event, "C", "", body});
  };
  for (const char* body : {"", "{", "[]", "{}", R"({"repair":1})", R"({"repair":{}})"})
    CHECK_MESSAGE(!notify("repair_drained", body).has_value(), body);
  CHECK(notify("slo_burn", "{").has_value());
}

}  // namespace
}  // namespace weft::adapt::sim
