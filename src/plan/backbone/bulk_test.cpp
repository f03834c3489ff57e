#include "plan/backbone/bulk.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/test_skip.hpp"
#include "plan/backbone/test_wan.hpp"
#include "saddle/test_clp.hpp"

namespace weft::plan::backbone {
namespace {

constexpr Slots hours{.count = 12, .seconds = 3600};

std::vector<Transfer> random_transfers(const Wan& wan, std::uint32_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Transfer> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::uint32_t>(rng.below(wan.sites.size()));
    const auto to =
        static_cast<std::uint32_t>((from + 1 + rng.below(wan.sites.size() - 1)) % wan.sites.size());
    const auto release = static_cast<std::uint32_t>(rng.below(hours.count - 4));
    const auto open = static_cast<std::uint32_t>(3 + rng.below(hours.count - release - 2));
    Transfer t{.id = "t" + std::to_string(i),
               .from = from,
               .to = {to},
               .gbit = (0.2 + rng.uniform()) * hours.seconds,
               .release = release,
               .deadline = std::min(release + open, hours.count),
               .pauses = {}};
    if (i % 3 == 0) t.gbps_max = 1.5 * t.gbit / hours.seconds / (t.deadline - t.release);
    if (i % 4 == 1) t.pauses.emplace_back(release, release + 1);
    out.push_back(std::move(t));
  }
  return out;
}

Loads random_background(const Wan& wan, std::uint64_t seed) {
  Rng rng(seed);
  Loads out;
  for (std::size_t r = 0; r < wan.link_count() * hours.count; ++r)
    out.push_back(0.8 * rng.uniform());
  return out;
}

void check_sends(const std::vector<Transfer>& transfers, const Loads& background,
                 const BulkAnswer& a) {
  Loads loads = background;
  std::vector<double> sent(transfers.size(), 0.0);
  std::vector<std::vector<double>> rate(transfers.size(), std::vector<double>(hours.count, 0.0));
  for (const BulkAnswer::Send& one : a.sends) {
    CHECK((one.stage > 0 || transfers[one.transfer].may_send(one.slot)));
    CHECK(one.slot >= transfers[one.transfer].release);
    CHECK(one.slot < transfers[one.transfer].deadline);
    if (one.stage == 0) {
      sent[one.transfer] += one.gbps * hours.seconds;
      rate[one.transfer][one.slot] += one.gbps;
    }
    for (const std::uint32_t l : one.links) loads[l * hours.count + one.slot] += one.gbps;
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    CHECK(sent[i] == approx(transfers[i].gbit).epsilon(1e-6));
    for (const double gbps : rate[i]) CHECK(gbps <= transfers[i].gbps_max * (1 + 1e-9));
  }
  for (std::size_t r = 0; r < loads.size(); ++r) CHECK(a.load[r] == approx(loads[r]).epsilon(1e-9));
}

// The same program in rows and columns of its own, over the same ways.
std::string bulk_mps(const Wan& wan, const std::vector<Transfer>& transfers,
                     const Loads& background, const BulkOptions& options) {
  const bool is_mlu = options.objective == BulkObjective::mlu;
  std::string rows = "NAME t\nROWS\n N obj\n", columns = "COLUMNS\n", rhs = "RHS\n";
  for (std::size_t r = 0; r < background.size(); ++r) {  // flows - peak <= - background
    rows += fmt::format(" L r{}\n", r);
    rhs += fmt::format(" s r{} {:.17g}\n", r, -background[r]);
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& t = transfers[i];
    rows += fmt::format(" E d{}\n", i);
    rhs += fmt::format(" s d{} {:.17g}\n", i, t.gbit / hours.seconds);
    const PathSet paths = find_paths(wan, {{t.from, t.to[0], 1, 0}}, options.paths);
    for (std::uint32_t s = t.release; s < t.deadline; ++s) {
      if (!t.may_send(s)) continue;
      rows += fmt::format(" L c{}_{}\n", i, s);
      rhs += fmt::format(" s c{}_{} {:.17g}\n", i, s, std::min(t.gbps_max, 1e6));
      for (std::size_t q = 0; q < paths.path_count(); ++q) {
        const std::string x = fmt::format(" x{}_{}_{}", i, s, q);
        columns += fmt::format("{} d{} 1\n{} c{}_{} 1\n", x, i, x, i, s);
        for (const std::uint32_t l : paths.path(q))
          columns += fmt::format("{} r{} 1\n", x, l * hours.count + s);
      }
    }
  }
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    if (!is_mlu || l == 0) columns += fmt::format(" p{} obj 1\n", l);
    for (std::uint32_t s = 0; s < hours.count; ++s)
      columns += fmt::format(" p{} r{} {}\n", is_mlu ? 0 : l, l * hours.count + s,
                             is_mlu ? -wan.gbps(l) : -1);
  }
  return rows + columns + rhs + "ENDATA\n";
}

// With storage, and without ways: flows on links by slot, and what each site holds from slot to
// slot (Ford & Fulkerson's network in time).
std::string stored_mps(const Wan& wan, const std::vector<Transfer>& transfers,
                       const Loads& background, bool is_mlu) {
  std::string rows = "NAME t\nROWS\n N obj\n", columns = "COLUMNS\n", rhs = "RHS\n";
  for (std::size_t r = 0; r < background.size(); ++r) {
    rows += fmt::format(" L r{}\n", r);
    rhs += fmt::format(" s r{} {:.17g}\n", r, -background[r]);
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& t = transfers[i];
    const auto balance = [&](std::uint32_t site, std::uint32_t s) {
      return site == t.to[0] ? fmt::format("d{}", i) : fmt::format("b{}_{}_{}", i, site, s);
    };
    rows += fmt::format(" E d{}\n", i);
    rhs += fmt::format(" s d{} {:.17g}\n", i, t.gbit / hours.seconds);
    for (std::uint32_t s = t.release; s < t.deadline; ++s) {
      rows += fmt::format(" L c{}_{}\n", i, s);
      rhs +=
          fmt::format(" s c{}_{} {:.17g}\n", i, s, t.may_send(s) ? std::min(t.gbps_max, 1e6) : 0.0);
      for (std::uint32_t v = 0; v < wan.sites.size(); ++v) {
        if (v == t.from || v == t.to[0]) continue;
        rows += " E " + balance(v, s) + "\n";
        if (s + 1 < t.deadline)
          columns += fmt::format(" h{0}_{1}_{2} {3} -1\n h{0}_{1}_{2} {4} 1\n", i, v, s,
                                 balance(v, s), balance(v, s + 1));
      }
      for (std::uint32_t l = 0; l < wan.link_count(); ++l) {
        if (wan.to(l) == t.from || wan.from(l) == t.to[0]) continue;
        const std::string x = fmt::format(" f{}_{}_{}", i, l, s);
        columns +=
            fmt::format("{} r{} 1\n{} {} 1\n", x, l * hours.count + s, x, balance(wan.to(l), s));
        columns += wan.from(l) == t.from ? fmt::format("{} c{}_{} 1\n", x, i, s)
                                         : fmt::format("{} {} -1\n", x, balance(wan.from(l), s));
      }
    }
  }
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    if (!is_mlu || l == 0) columns += fmt::format(" p{} obj 1\n", l);
    for (std::uint32_t s = 0; s < hours.count; ++s)
      columns += fmt::format(" p{} r{} {}\n", is_mlu ? 0 : l, l * hours.count + s,
                             is_mlu ? -wan.gbps(l) : -1);
  }
  return rows + columns + rhs + "ENDATA\n";
}

// Nothing leaves a site before it has come there, and all of it goes on.
void check_storage(const Wan& wan, const std::vector<Transfer>& transfers, const BulkAnswer& a) {
  std::vector<double> held(transfers.size() * wan.sites.size(), 0.0);
  for (std::uint32_t s = 0; s < hours.count; ++s) {
    for (const BulkAnswer::Send& one : a.sends) {
      if (one.slot != s) continue;
      for (const std::uint32_t l : one.links) {
        held[one.transfer * wan.sites.size() + wan.from(l)] -= one.gbps;
        held[one.transfer * wan.sites.size() + wan.to(l)] += one.gbps;
      }
    }
    for (std::size_t i = 0; i < transfers.size(); ++i)
      for (std::uint32_t v = 0; v < wan.sites.size(); ++v) {
        const double volume = transfers[i].gbit / hours.seconds;
        const double gbps = held[i * wan.sites.size() + v];
        if (v != transfers[i].from) CHECK(gbps >= -1e-9 * volume);
        if (s + 1 == hours.count && v == transfers[i].to[0])
          CHECK(gbps == approx(volume).epsilon(1e-6));
      }
  }
}

std::string transfer_refusal(std::string_view text) {
  const auto out = read_transfers(text, "t", random_wan(5, 0, 1), hours);
  return out ? "" : out.error().text();
}

const Wan pair{.sites = {"a", "b"}, .cables = {{0, 1, 10, {}}}};

}  // namespace

TEST_CASE("a transfer fills the valley") {
  // Background 1, 3, 1, 3; two Gbit/s-slots fit below the peak of 3, four more raise it by 1.
  Loads background{1, 3, 1, 3, 0, 0, 0, 0};
  const BulkOptions options{.gap = 1e-5, .slots = {.count = 4, .seconds = 10}};
  std::vector<Transfer> one{
      {.id = "t", .from = 0, .to = {1}, .gbit = 40, .deadline = 4, .pauses = {}}};
  CHECK(plan_bulk(pair, one, background, options).value == approx(3).epsilon(1e-4));
  one[0].gbit = 80;
  const BulkAnswer more = plan_bulk(pair, one, background, options);
  CHECK(more.value == approx(4).epsilon(1e-4));
  CHECK(more.uniform == approx(5));
  CHECK(more.background == 3);
  one[0].pauses.emplace_back(0, 2);  // (1 + 3 + 8) / 2
  CHECK(plan_bulk(pair, one, background, options).value == approx(6).epsilon(1e-4));
}

TEST_CASE("capacity goes before peaks; what does not fit is said") {
  // Two ways of 1 and 4 Gbit/s; the short one has background up to its capacity in one slot.
  const Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}, {0, 2, 4, {}}, {2, 1, 4, {}}}};
  Loads background(12, 0.0);
  background[0] = 1;
  const BulkOptions options{.gap = 1e-4, .slots = {.count = 2, .seconds = 1}};
  std::vector<Transfer> one{
      {.id = "t", .from = 0, .to = {1}, .gbit = 5, .deadline = 2, .pauses = {}}};
  const BulkAnswer fits = plan_bulk(wan, one, background, options);
  CHECK(fits.over_gbps < 0.01);
  // Slot 1 of the short way, then 2 in each slot of the long one: 1 + 2 + 2.
  CHECK(fits.value == approx(5).epsilon(1e-2));
  one[0].gbit = 11;  // 9 fit
  const BulkAnswer over = plan_bulk(wan, one, background, options);
  CHECK(over.over_gbps > 0.3);
  // What is above capacity has its price in the plan, not in what is called the sum of peaks: 2 are
  // too much on one way or the other, whichever the plan takes.
  double peaks = 0;
  for (std::size_t l = 0; l < wan.link_count(); ++l)
    peaks += std::max(over.load[2 * l], over.load[2 * l + 1]);
  CHECK(over.value == approx(peaks).epsilon(1e-9));
  CHECK(over.bound <= over.value);
  CHECK(over.excess >= 1 - 1e-3);  // 2 Gbit in 2 slots do not fit
  CHECK(over.excess_price > 0);
  CHECK(over.uniform == approx(6.5));  // 1 + 5.5 on the short way
  CHECK(over.uniform_excess == approx(5.5));
  const std::string text = to_table(wan, one, over, options, 0);
  CHECK(text.contains("above capacity, over all links' peaks: "));
  CHECK(text.contains(", with uniform 5.5 Gbps; the worst link by "));
}

TEST_CASE("where all is short, peaks are those of the links, and the bound holds for them") {
  // 21.7 Gbit/s more than both ways from a to c carry.
  const Wan wan{.sites = {"a", "b", "c"},
                .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}, {0, 2, 10, {}}}};
  const BulkOptions options{.slots = {.count = 2, .seconds = 10}};
  const std::vector<Transfer> one{
      {.id = "t", .from = 0, .to = {2}, .gbit = 834, .deadline = 2, .pauses = {}}};
  for (const bool is_replay : {false, true}) {
    CAPTURE(is_replay);
    const BulkAnswer a = is_replay
                             ? replay_bulk(wan, one, Loads(12, 0.0), {}, Known::day_ahead, options)
                             : plan_bulk(wan, one, Loads(12, 0.0), options);
    // 41.7 sent: the short way 31.7, the long one 10 on each of two links.
    CHECK(a.value == approx(51.7).epsilon(0.01));
    CHECK(a.excess == approx(21.7).epsilon(0.01));
    CHECK(a.uniform == approx(41.7));
    CHECK(a.uniform_excess == approx(31.7));
    CHECK(a.bound <= 51.7);
    CHECK(a.gap == approx(a.value / a.bound - 1));
  }
}

TEST_CASE("a transfer of nothing is one, and no share of nothing is told") {
  const auto transfers = read_transfers("id,src,dst,size\nx,a,b,0 TB\n", "t", pair, hours);
  REQUIRE(transfers);
  const BulkOptions options{.slots = hours};
  const Loads none(std::size_t{2} * hours.count, 0.0);
  const BulkAnswer plan = plan_bulk(pair, *transfers, none, options);
  const BulkAnswer replay = replay_bulk(pair, *transfers, none, {}, Known::release, options);
  for (const BulkAnswer& a : {plan, replay}) {
    const std::string text = to_table(pair, *transfers, a, options, 0);
    CHECK(text.contains("0 bps, - against uniform (0 bps)"));
    CHECK(text.contains("1 transfer, 0 of them late"));
    CHECK_FALSE(text.contains("nan"));
  }
}

TEST_CASE("one to many: a tree carries one copy on each link") {
  // a - b, then b - c and b - d.
  const Wan wan{.sites = {"a", "b", "c", "d"},
                .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}, {1, 3, 10, {}}}};
  const std::vector<Transfer> one{
      {.id = "t", .from = 0, .to = {2, 3}, .gbit = 20, .deadline = 2, .pauses = {}}};
  const BulkOptions options{.gap = 1e-4, .slots = {.count = 2, .seconds = 5}};
  const BulkAnswer a = plan_bulk(wan, one, Loads(12, 0.0), options);
  CHECK(a.value == approx(6).epsilon(1e-3));  // 2 Gbit/s on three links
}

TEST_CASE("what is sent keeps releases, deadlines, caps and pauses, and adds up") {
  for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(test_effort(8), 3); ++seed) {
    CAPTURE(seed);
    const Wan wan = random_wan(6, 3, seed);
    const auto transfers = random_transfers(wan, 25, seed);
    const Loads background = random_background(wan, seed);
    const BulkOptions options{.gap = 1e-3, .slots = hours};
    const BulkAnswer a = plan_bulk(wan, transfers, background, options);
    CHECK(a.gap <= 1e-3);
    CHECK(a.value <= a.uniform * (1 + 1e-3));
    check_sends(transfers, background, a);
    for (const Known known : {Known::day_ahead, Known::release}) {
      const BulkAnswer day = replay_bulk(wan, transfers, background,
                                         {random_background(wan, seed + 100)}, known, options);
      CHECK(day.value >= day.bound * (1 - 1e-9));
      check_sends(transfers, background, day);
    }
  }
}

TEST_CASE("store and forward: through two valleys at different times") {
  // a - b is busy but in slot 0, b - c but in slot 1.
  const Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}}};
  Loads background(8, 0.0);
  background[1] = 4;  // a > b in slot 1
  background[4] = 4;  // b > c in slot 0
  const std::vector<Transfer> one{
      {.id = "t", .from = 0, .to = {2}, .gbit = 40, .deadline = 2, .pauses = {}}};
  BulkOptions options{.gap = 1e-4, .slots = {.count = 2, .seconds = 10}};
  const BulkAnswer through = plan_bulk(wan, one, background, options);
  CHECK(through.value == approx(12).epsilon(1e-3));  // 2 in each slot: 6 + 6
  CHECK(through.waited == 0);
  options.store = true;
  const BulkAnswer stored = plan_bulk(wan, one, background, options);
  CHECK(stored.value == approx(8).epsilon(1e-3));  // no peak grows
  CHECK(stored.bound <= 8 * (1 + 1e-9));
  CHECK(stored.waited == approx(1).epsilon(1e-3));
  CHECK(write_plan(wan, one, stored).contains("t,1,4,b>c,1\n"));
}

TEST_CASE("store and forward never needs more, and moves what it has") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const Wan wan = random_wan(6, 3, seed);
    const auto transfers = random_transfers(wan, 25, seed);
    const Loads background = random_background(wan, seed);
    for (const BulkObjective objective : {BulkObjective::peaks, BulkObjective::mlu}) {
      BulkOptions options{.objective = objective, .gap = 1e-3, .slots = hours};
      const BulkAnswer through = plan_bulk(wan, transfers, background, options);
      options.store = true;
      const BulkAnswer stored = plan_bulk(wan, transfers, background, options);
      CHECK(stored.gap <= 1e-3);
      CHECK(stored.value <= through.value * (1 + 1e-3));
      check_sends(transfers, background, stored);
      check_storage(wan, transfers, stored);
    }
  }
}

TEST_CASE("a replay does not look ahead") {
  const Wan wan = random_wan(6, 3, 2);
  const auto transfers = random_transfers(wan, 20, 2);
  const Loads one = random_background(wan, 1);
  Loads other = one;
  constexpr std::uint32_t split = 6;
  for (std::size_t r = 0; r < other.size(); ++r)
    if (r % hours.count >= split) other[r] *= 3;
  std::vector<Transfer> fewer;
  for (const Transfer& t : transfers)
    if (t.release <= split) fewer.push_back(t);
  const BulkOptions options{.gap = 1e-3, .slots = hours};
  const auto sends_of = [&](const Loads& background, const std::vector<Transfer>& which) {
    std::vector<std::string> out;
    for (const auto& s : replay_bulk(wan, which, background, {one}, Known::release, options).sends)
      if (s.slot <= split)
        out.push_back(fmt::format("{} {} {}", which[s.transfer].id, s.slot, s.gbps));
    return out;
  };
  CHECK(sends_of(one, transfers) == sends_of(other, transfers));
  CHECK(sends_of(one, transfers) == sends_of(one, fewer));
}

TEST_CASE("CLP finds the same plans as cheap" * doctest::test_suite("needs clp")) {
  if (!saddle::has_clp()) return skip_test("no clp; install the Debian package coinor-clp");
  const TestFolder folder;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Wan wan = random_wan(6, 3, seed);
    for (Cable& c : wan.cables) c.gbps *= 10;  // no capacity in the way
    const auto transfers = random_transfers(wan, 20, seed);
    const Loads background = random_background(wan, seed);
    for (const BulkObjective objective : {BulkObjective::peaks, BulkObjective::mlu}) {
      CAPTURE(seed);
      const BulkOptions options{.objective = objective, .gap = 1e-4, .slots = hours};
      const BulkAnswer a = plan_bulk(wan, transfers, background, options);
      const auto optimum =
          saddle::clp_optimum(bulk_mps(wan, transfers, background, options), folder);
      REQUIRE(optimum);
      CHECK(a.gap <= 1e-4);
      CHECK(a.bound <= *optimum * (1 + 1e-6));
      CHECK(a.value >= *optimum * (1 - 1e-6));
      const BulkOptions storing{.objective = objective, .gap = 1e-4, .store = true, .slots = hours};
      const BulkAnswer stored = plan_bulk(wan, transfers, background, storing);
      const auto least = saddle::clp_optimum(
          stored_mps(wan, transfers, background, objective == BulkObjective::mlu), folder);
      REQUIRE(least);
      CHECK(stored.gap <= 1e-4);
      CHECK(stored.bound <= *least * (1 + 1e-6));
      CHECK(stored.value >= *least * (1 - 1e-6));
    }
  }
}

TEST_CASE("transfers are read to whole slots, and errors say where") {
  const auto ok = read_transfers(
      "id,src,dst,size,release,deadline,rate_max,pause\nx,s0,s1;s2,9 GB,30 min,5 h,1 Gbps,2 h-150 "
      "min\n",
      "t", random_wan(5, 0, 1), hours);
  REQUIRE(ok);
  const Transfer& t = ok->at(0);
  CHECK(t.release == 1);
  CHECK(t.deadline == 5);
  CHECK(t.gbit == approx(72));
  CHECK(t.to.size() == 2);
  CHECK_FALSE(t.may_send(2));
  CHECK(t.may_send(3));
  CHECK(transfer_refusal("id,src,dst,size\nx,s0,s9,5\n,s0,s0,1 GB\n") ==
        "t:2:6: no site \"s9\" (did you mean \"s0\"?); use a site of the topology\n"
        "t:2:9: size \"5\" has no unit; write e.g. \"64 MiB\"\n"
        "t:3:1: a transfer without id; name it\n"
        "t:3:5: a transfer to its own site, or twice to one; name every other site once");
  CHECK(transfer_refusal("id,src,dst,size\nx,s0,s1,5 GB\ny,s0,s1,5 GB\nx,s1,s0,1 GB\n") ==
        "t:4:1: duplicate transfer \"x\"; give each transfer an id of its own");
  CHECK(transfer_refusal(
            "id,src,dst,size,release,deadline,rate_max\nx,s0,s1,1 TB,0 h,2 h,1 Gbps\n") ==
        "t:2:1: transfer \"x\" can send 7200 of 8000 Gbit until its deadline; "
        "raise rate_max or move its deadline, release or pauses");
  CHECK(transfer_refusal("id,src,dst,size,release,deadline\nx,s0,s1,1 TB,30 min,90 min\n") ==
        "t:2:1: transfer \"x\" has no whole slot to be sent in; move its deadline, release or "
        "pauses");
  CHECK(transfer_refusal("id,src,dst,size,deadline\nx,s0,s1,1 TB,13 h\n") ==
        "t:2:14: \"13 h\" is not within the day; use 0 to 720 min");
}

TEST_CASE("measured days: certified, and re-planned below uniform" *
          doctest::test_suite("needs wandata")) {
  const std::string folder = WEFT_WAN_DATA;
  if (folder.empty()) return skip_test("no data; configure with -DWEFT_WAN_DATA=FOLDER");
  const auto file = load_wan(folder + "/abilene_links.csv");
  REQUIRE(file);
  const auto text = read_text(folder + "/abilene_tm_5min_20040301-07.csv.gz");
  REQUIRE(text);
  const auto series = read_series(*text, "tm", file->wan);
  REQUIRE(series);
  const Slots day{};
  const auto loads = background(*series, "20040304", file->wan, day);
  REQUIRE(loads);
  Rng rng(7);
  std::vector<Transfer> transfers;
  double volume = 0;
  for (const float mbps : series->mbps) volume += static_cast<double>(mbps) * 1e-3 * 300 / 7;
  for (int i = 0; i < 300; ++i) {
    const auto from = static_cast<std::uint32_t>(rng.below(12));
    const auto release = static_cast<std::uint32_t>(rng.below(80));
    const auto open = static_cast<std::uint32_t>(8 + rng.below(41));
    transfers.push_back({.id = std::to_string(i),
                         .from = from,
                         .to = {static_cast<std::uint32_t>((from + 1 + rng.below(11)) % 12)},
                         .gbit = (0.1 + rng.uniform()) * 0.4 * volume / 180,
                         .release = release,
                         .deadline = std::min(release + open, day.count),
                         .pauses = {}});
  }
  const BulkOptions options{};
  const BulkAnswer known = plan_bulk(file->wan, transfers, *loads, options);
  CHECK(known.gap <= 0.005);
  CHECK(known.iterations <= 400);
  std::vector<Loads> history;
  for (const std::string& one : days_before(*series, "20040304", day))
    history.push_back(*background(*series, one, file->wan, day));
  CHECK(history.size() == 3);
  const BulkAnswer replay =
      replay_bulk(file->wan, transfers, *loads, history, Known::day_ahead, options);
  CHECK(replay.value < 0.95 * replay.uniform);
  for (std::size_t i = 0; i < transfers.size(); ++i)
    CHECK(replay.sent[i] == approx(transfers[i].gbit).epsilon(1e-6));
}

}  // namespace weft::plan::backbone
