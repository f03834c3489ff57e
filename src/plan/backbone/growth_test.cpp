#include "plan/backbone/growth.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "plan/backbone/test_wan.hpp"

namespace weft::plan::backbone {
namespace {

std::vector<Demand> draw_demands(const Wan& wan, Rng& rng) {
  std::vector<Demand> out;
  for (int i = 0; i < 60; ++i) {
    const auto from = static_cast<std::uint32_t>(rng.below(wan.sites.size())),
               to = static_cast<std::uint32_t>(rng.below(wan.sites.size()));
    if (from != to)
      out.push_back({from, to, static_cast<double>(rng.below(1'000'000'000'000)) * 1e-9, 3,
                     static_cast<Cause>(rng.below(cause_count))});
  }
  return out;
}

// Links between any two sites, by relaxation over all of them.
std::vector<std::vector<double>> hops_of(const Wan& wan) {
  const std::size_t n = wan.sites.size();
  std::vector<std::vector<double>> out(n, std::vector<double>(n, 1e9));
  for (std::size_t i = 0; i < n; ++i) out[i][i] = 0;
  for (const Cable& c : wan.cables) out[c.a][c.b] = out[c.b][c.a] = 1;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) out[i][j] = std::min(out[i][j], out[i][k] + out[k][j]);
  return out;
}

TEST_CASE("growth: causes add up to the whole, exactly, and links carry each over its hops") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    Wan wan = random_wan(10, 5, seed);
    wan.sites.push_back("alone");
    const auto before = draw_demands(wan, rng), now = draw_demands(wan, rng);
    const Growth growth = backbone::growth(wan, before, now);
    const auto hops = hops_of(wan);
    for (const auto& [demands, when] :
         {std::pair{&before, &Change::before}, std::pair{&now, &Change::now}}) {
      std::array<double, cause_count> asked{}, carried{};
      double all = 0, cut = 0;
      for (const Demand& d : *demands) {
        const double rate = std::round(d.gbps * 1e9);
        all += rate;
        const double length = hops[d.from][d.to];
        (length > 1e6 ? cut : carried[static_cast<std::size_t>(d.cause)]) +=
            length > 1e6 ? rate : rate * length;
        asked[static_cast<std::size_t>(d.cause)] += rate;
      }
      CHECK(growth.traffic.all().*when == all);
      CHECK(growth.without_path.*when == cut);
      for (std::size_t c = 0; c < cause_count; ++c) {
        CHECK(growth.traffic.of[c].*when == asked[c]);
        double sum = 0;
        for (const Changes& link : growth.links) sum += link.of[c].*when;
        CHECK(sum == carried[c]);
      }
    }
    double by_cause = 0;
    for (const Change& c : growth.traffic.of) by_cause += c.by();
    CHECK(by_cause == growth.traffic.all().by());
  }
}

TEST_CASE("demands with causes and times: written and read again, refused with lines") {
  const auto file = read_wan("src,dst,capacity\na,b,1 Gbps\nb,c,1 Gbps\n", "t");
  REQUIRE(file);
  const std::vector<Demand> demands{{0, 1, 0.25, 0, Cause::checkpoints}, {2, 0, 1, 3}};
  const std::string text = write_demands(file->wan, demands);
  CHECK(text ==
        "src,dst,rate,class,cause\na,b,250000000 bps,1,checkpoints\nc,a,1000000000 bps,4,other\n");
  const auto back = read_demands(text, "d", file->wan);
  REQUIRE(back);
  CHECK(back->at(0).cause == Cause::checkpoints);
  const std::string timed =
      "src,dst,rate,cause,time\na,b,1 Gbps,ingest,00:00\na,b,2 Gbps,inference,01:00\n"
      "a,b,1 Gbps,,01:00\nb,c,2 Gbps,,00:00\n";
  CHECK(read_demands(timed, "d", file->wan)->size() == 2);  // the first of equals: 00:00
  CHECK(read_demands(timed, "d", file->wan)->at(1).from == 1);
  CHECK(read_demands(timed, "d", file->wan, "01:00")->at(0).cause == Cause::inference);
  CHECK(read_demands(timed, "d", file->wan, "02:00").error().text() ==
        "--at: no interval \"02:00\"; use 00:00 to 01:00");
  CHECK(read_demands(text, "d", file->wan, "02:00").error().text() ==
        "--at: the demands have no times; leave it out, or add the column time");
  const auto series = read_series(timed, "s", file->wan);
  REQUIRE(series);
  CHECK(series->times == std::vector<std::string>{"00:00", "01:00"});
  CHECK(series->mbps == std::vector<float>{1000, 2000, 3000, 0});
  CHECK(read_series(text, "s", file->wan).error().text().find("name the columns time and") !=
        std::string::npos);
  CHECK(read_demands("src,dst,rate,cause,time\na,b,1 Gbps,ingst,1\na,b,1 Gbps,,\n", "d", file->wan)
            .error()
            .text() ==
        "d:2:12: \"ingst\" is not known (did you mean \"ingest\"?); choose one of ingest, "
        "replication, freshness, checkpoints, inference, other");
  CHECK(read_demands("src,dst,rate,time\na,b,1 Gbps,1\na,b,1 Gbps,\n", "d", file->wan)
            .error()
            .text()
            .find("a demand without a time") != std::string::npos);
}

}  // namespace
}  // namespace weft::plan::backbone
