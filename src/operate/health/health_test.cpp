#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/test_approx.hpp"
#include "base/test_folder.hpp"
#include "model/scenario/scenario.hpp"
#include "operate/health/advise.hpp"
#include "operate/health/book.hpp"

namespace weft::operate::health {
namespace {

using model::LinkId;

// A table of which every number follows from `n`, so that a mixture of two is seen.
HealthTable table_number(std::uint32_t n) {
  HealthTable t{.written = {1'700'000'000 * ns_per_s + n}, .rails = {}, .links = {}, .advice = {}};
  t.links_more = n;
  for (std::uint16_t r = 0; r < 8; ++r)
    t.rails.push_back({r, static_cast<std::uint16_t>(n % 512), n, n, n, 0.5, 0.25});
  for (int i = 0; i < 100; ++i)
    t.links.push_back({fmt::format("rtsw:{}->ctsw:{}", n, i), 0.25, 0.125,
                       static_cast<std::uint16_t>(n % 512), layout::no_rail});
  for (int i = 0; i < 50; ++i)
    t.advice.push_back({.job = n, .bytes_from = n, .bytes_to = n, .nodes = n, .ranks = n});
  return t;
}

bool is_number(const HealthTable& t, std::uint32_t n) {
  const HealthTable wanted = table_number(n);
  return t.written == wanted.written && t.links_more == n && t.rails == wanted.rails &&
         t.links == wanted.links && t.advice.size() == wanted.advice.size() &&
         std::ranges::all_of(t.advice, [&](const Advice& a) { return a.job == n && a.ranks == n; });
}

// By its documentation alone: places of docs/path-health.md, no struct of ours.
std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t out = 0;
  for (std::size_t i = size; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

TEST_CASE("a table as bytes: read by the documented places") {
  HealthTable t{.written = {123'456'789'012'345'678}, .rails = {}, .links = {}, .advice = {}};
  t.valid_ns = 7 * ns_per_s;
  t.rails.push_back({3, layout::evidence_slow, 16, 1, 2, 0.5, 0.001});
  t.links.push_back({"rtsw:3->ctsw:1", 0.25, 1e-6, layout::evidence_down, 5});
  t.advice.push_back({.job = 0x1122334455667788,
                      .bytes_from = 1 << 20,
                      .bytes_to = 1 << 22,
                      .nodes = 4,
                      .ranks = 32,
                      .operation = 4,
                      .algorithm = 1,
                      .protocol = 2,
                      .channels = 14,
                      .share_ppm = 571'429});
  const std::string b = encode(t);
  REQUIRE(b.size() == 40 + 32 + 72 + 40);
  CHECK(number_at(b, 8, 4) == 1);
  CHECK(number_at(b, 12, 4) == b.size());
  CHECK(number_at(b, 16, 8) == 123'456'789'012'345'678);
  CHECK(number_at(b, 24, 4) == 7'000);
  CHECK(number_at(b, 32, 2) == 1);
  CHECK(number_at(b, 34, 2) == 1);
  CHECK(number_at(b, 36, 2) == 1);
  CHECK(number_at(b, 40, 2) == 3);
  CHECK(number_at(b, 44, 4) == 16);
  CHECK(number_at(b, 56, 4) == 500'000);
  CHECK(number_at(b, 60, 4) == 1'000);
  CHECK(b.substr(72, 15) == std::string("rtsw:3->ctsw:1\0", 15));
  CHECK(number_at(b, 128, 4) == 250'000);
  CHECK(number_at(b, 132, 4) == 1);
  CHECK(number_at(b, 138, 2) == 5);
  CHECK(number_at(b, 144, 8) == 0x1122334455667788);
  CHECK(number_at(b, 168, 4) == 4);
  CHECK(number_at(b, 176, 4) == (14u << 24 | 2u << 16 | 1u << 8 | 4u));
  CHECK(number_at(b, 180, 4) == 571'429);
  // The sum, by FNV's own definition over words of eight bytes.
  std::uint64_t sum = 14'695'981'039'346'656'037u;
  for (std::size_t i = 8; i < b.size(); i += 8)
    sum = (sum ^ number_at(b, i, 8)) * 1'099'511'628'211u;
  CHECK(number_at(b, 0, 8) == sum);
}

TEST_CASE("what was damaged is no table: every bit of it") {
  HealthTable t = table_number(5);
  t.links.resize(2);
  t.advice.resize(1);
  const std::string whole = encode(t);
  CHECK(decode(whole, "t").has_value());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(decode(damaged, "t").has_value());
  }
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(decode(std::string_view(whole).substr(0, size), "t").has_value());
  CHECK_FALSE(decode(whole + '\0', "t").has_value());
}

TEST_CASE("what finds no place is counted") {
  HealthTable t;
  t.links_more = 7;
  for (int i = 0; i < 200; ++i)
    t.links.push_back({fmt::format("a{}", i), 0, 0, 1, layout::no_rail});
  t.links[3].name = std::string(56, 'x');
  const auto back = decode(encode(t), "t");
  REQUIRE(back.has_value());
  CHECK(back->links.size() == layout::links_max);
  CHECK(back->links_more == 7 + 200 - layout::links_max);
  CHECK(back->links[3].name == "a4");
}

TEST_CASE("age decides whether a table is believed") {
  layout::TableHead head{};
  head.written_ns = 1'000 * ns_per_s;
  head.valid_ms = 10'000;
  CHECK(layout::is_fresh(head, head.written_ns));
  CHECK(layout::is_fresh(head, head.written_ns + 10 * ns_per_s));
  CHECK_FALSE(layout::is_fresh(head, head.written_ns + 10 * ns_per_s + 1));
  CHECK(layout::is_fresh(head, head.written_ns - ns_per_s));
  CHECK_FALSE(layout::is_fresh(head, head.written_ns - ns_per_s - 1));
  head.written_ns = INT64_MIN;
  CHECK_FALSE(layout::is_fresh(head, 0));
  head.written_ns = INT64_MAX;
  CHECK_FALSE(layout::is_fresh(head, 0));
}

// The writer never pauses, and is killed in the middle again and again; readers see a whole table
// each time, never an older one than before.
TEST_CASE("readers of a file whose writer is killed again and again") {
  const TestFolder folder;
  const std::string path = folder.file("health");
  REQUIRE(Publisher::open(path).has_value());
  std::uint32_t begin = 1, last = 0, read = 0;
  for (int life = 0; life < 8; ++life, begin += 100'000) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(30);  // should its parent die
      auto file = Publisher::open(path);
      WEFT_CHECK(file.has_value());
      std::vector<std::string> tables;
      for (std::uint32_t i = 0; i < 64; ++i) tables.push_back(encode(table_number(begin + i)));
      for (std::size_t i = 0;; ++i)
        WEFT_CHECK(file->publish(tables[std::min<std::size_t>(i, 63 - i % 2)]).has_value());
    }
    // A busy machine takes a while to the writer's first table; until then the last life's stands.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int i = 0; (i < 400 || last < begin) && std::chrono::steady_clock::now() < give_up; ++i) {
      const auto bytes = load(path);
      if (!bytes) continue;  // overtaken three times, or nothing written yet: no opinion
      const auto table = decode(*bytes, path);
      REQUIRE(table.has_value());
      REQUIRE(is_number(*table, table->links_more));
      CHECK(table->links_more + 1 >= last);  // two take turns at the end of each life
      last = table->links_more;
      ++read;
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  CHECK(read > 400);
  CHECK(last > 700'000);  // of the last life
}

TEST_CASE("a crash between the two writes, and one in the first") {
  const TestFolder folder;
  const std::string path = folder.file("health");
  {
    auto file = Publisher::open(path);
    REQUIRE(file.has_value());
    CHECK_FALSE(load(path).has_value());  // no table yet
    REQUIRE(file->publish(encode(table_number(1))).has_value());
    REQUIRE(file->publish(encode(table_number(2))).has_value());
    const auto twice = Publisher::open(path);
    REQUIRE_FALSE(twice.has_value());
    CHECK(twice.error().what == "another process writes this table");
  }
  // The third would go to the second slot: half of it, then all of it, and no word of it.
  const std::string third = encode(table_number(3));
  for (const std::size_t part : {third.size() / 2, third.size()}) {
    const Fd raw(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::pwrite(raw.get(), third.data(), part, 64 + 16'384) == static_cast<ssize_t>(part));
    const auto found = load(path);
    REQUIRE(found.has_value());
    CHECK(is_number(decode(*found, path).value(), 2));
  }
  auto file = Publisher::open(path);
  REQUIRE(file.has_value());
  REQUIRE(file->publish(encode(table_number(4))).has_value());
  CHECK(is_number(decode(load(path).value(), path).value(), 4));
}

TEST_CASE("anything else at the path is replaced, and never read as a table") {
  const TestFolder folder;
  const std::string path = folder.write("health", "hello");
  CHECK_FALSE(load(path).has_value());
  CHECK_FALSE(load(folder.file("none")).has_value());
  auto file = Publisher::open(path);
  REQUIRE(file.has_value());
  REQUIRE(file->publish(encode(table_number(9))).has_value());
  CHECK(is_number(decode(load(path).value(), path).value(), 9));
  // One that was cut short is no file of ours any more.
  REQUIRE(::truncate(path.c_str(), 100) == 0);
  CHECK_FALSE(load(path).has_value());
}

model::Fabric small_zone() {
  const auto file = model::parse_scenario(
      "fabric: {generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 2, spines: 4}\n",
      "zone.yaml", {});
  REQUIRE(file.has_value());
  auto setup = plan::read_setup(file->variants.front());
  REQUIRE(setup.has_value());
  return std::move(setup->fabric);
}

// Records one after the other; what is not well after each.
class Told {
 public:
  explicit Told(const model::Fabric& fabric) : fabric_(fabric), book_(fabric), lines_(fabric) {}
  Conditions after(std::string_view kind, std::string_view part, std::string_view more = "") {
    const std::string line =
        fmt::format(R"({{"id":"{}","t":{},"source":"syslog","kind":"{}","entity":"{}"{}}})", ++n_,
                    now_.ns, kind, part, more);
    REQUIRE(lines_.add(line, {}).has_value());
    const model::RecordSet set = lines_.take();
    for (const model::Record& row : set.rows) book_.take(set, row);
    return now();
  }
  Conditions now(std::int64_t later_s = 0) {
    now_.ns += later_s * ns_per_s;
    return book_.conditions(now_, {});
  }
  LinkId link(std::string_view name) const {
    return LinkId(model::find_entity(fabric_, {std::string(name), {}}).value().id);
  }

 private:
  const model::Fabric& fabric_;
  Book book_;
  model::RecordLines lines_;
  Timestamp now_{1'000 * ns_per_s};
  int n_ = 0;
};

TEST_CASE("evidence begins, ends and is forgotten") {
  const model::Fabric fabric = small_zone();
  Told t(fabric);
  const LinkId up = t.link("rtsw:0->ctsw:1"), down = t.link("ctsw:1->rtsw:0");
  SUBCASE("carrier, at both ends") {
    CHECK(t.after("link_down", "rtsw:0--ctsw:1").size() == 2);
    CHECK(t.now(100'000).at(up).rate == 0);
    CHECK(t.after("link_up", "rtsw:0--ctsw:1").empty());
    const std::string here = name(fabric, model::port_of(up));
    const std::string there = name(fabric, model::port_of(down));
    t.after("link_down", here);
    CHECK(t.after("link_down", there).at(down).evidence == layout::evidence_down);
    CHECK(t.after("link_up", here).size() == 2);
    CHECK(t.after("link_up", there).empty());
    t.after("link_down", here);
    CHECK(t.after("link_up", "rtsw:0--ctsw:1").empty());
  }
  SUBCASE("probes and counters speak for a minute") {
    CHECK(t.after("probe_loss", "rtsw:0->ctsw:1", R"(,"value":0.01)").at(up).loss == 0.01);
    CHECK(t.now().size() == 1);
    CHECK(t.after("ecn_marks", name(fabric, model::port_of(up))).at(up).evidence ==
          (layout::evidence_loss | layout::evidence_marks));
    CHECK(t.now(59).size() == 2);
    CHECK(t.now(2).empty());
  }
  SUBCASE("a rate, until there is another") {
    const auto slow = t.after("info", "nic:3", R"(,"attrs":{"rate_share":"0.5"})");
    CHECK(slow.size() == 2);
    CHECK(slow.begin()->second.rate == 0.5);
    CHECK(slow.begin()->second.evidence == layout::evidence_slow);
    CHECK(t.after("info", "nic:3", R"(,"attrs":{"rate_share":"-1"})").size() == 2);
    CHECK(t.after("info", "nic:3", R"(,"attrs":{"rate_share":"x"})").size() == 2);
    CHECK(t.after("info", "nic:3", R"(,"attrs":{"rate_share":"1"})").empty());
  }
  SUBCASE("NICs and switches") {
    const HealthTable dead = table_of(fabric, t.after("nic_down", "nic:3"), {});
    CHECK(dead.rails[1].nics == 6);
    CHECK(dead.rails[1].nics_down == 1);
    CHECK(dead.links.size() == 2);
    CHECK(dead.links[0].rail == 1);
    CHECK(t.after("nic_up", "nic:3").empty());
    CHECK(t.after("link_up", "no such part").empty());
    // Of a whole switch: which of its links, nobody knows.
    CHECK(t.after("bgp_down", "rtsw:1").empty());
  }
  SUBCASE("out of service") {
    Book book(fabric);
    const std::vector<model::Entity> out{model::find_entity(fabric, {"ctsw:2", {}}).value()};
    const Conditions at = book.conditions({}, out);
    CHECK(at.size() == 6);  // three racks, both ways
    CHECK(at.begin()->second.evidence == layout::evidence_out);
    CHECK(state_of(at).troubled_links().size() == 6);
  }
}

TEST_CASE("ports that run slower than their like, or than they did") {
  const model::Fabric fabric = small_zone();
  const auto port = [&](std::uint32_t i) { return model::port_of(LinkId(i)); };
  using Readings = std::vector<RateWatch::Reading>;
  constexpr double nominal = 400e9, veth = 10e9;
  constexpr auto at = [](std::int64_t s) { return Timestamp{1'000 * ns_per_s + s * ns_per_s}; };
  RateWatch watch;
  // All may be slow, or all as they should be.
  CHECK(watch.take(Readings{{port(0), nominal, veth}, {port(2), nominal, veth}}, at(0)).empty());
  // What is known of the rate says that nothing is wrong with them.
  RateWatch knows(RateWatch::Most{{nominal, 2 * nominal}});
  const auto first =
      knows.take(Readings{{port(0), nominal, nominal}, {port(2), nominal, 2 * nominal}}, at(0));
  REQUIRE(first.size() == 2);
  CHECK((first[0].share == 1 && first[1].share == 1));
  const auto slow =
      watch.take(Readings{{port(0), nominal, 400e9}, {port(2), nominal, 200e9}}, at(1));
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].part == port(2));
  CHECK(slow[0].share == 0.5);
  CHECK(watch.take(Readings{{port(2), nominal, 200e9}}, at(2)).empty());
  CHECK(watch.take(Readings{{port(2), nominal, -1}}, at(3)).empty());
  CHECK(watch.take(Readings{{port(2), nominal, 200e9}}, at(10)).empty());
  CHECK(watch.take(Readings{{port(2), nominal, 200e9}}, at(11)).size() == 1);  // again
  const auto back = watch.take(Readings{{port(2), nominal, 400e9}}, at(32));
  REQUIRE(back.size() == 1);
  CHECK(back[0].share == 1);
  CHECK(watch.take(Readings{{port(2), nominal, 400e9}}, at(90)).empty());
}

// A host with one NIC, which its agent's restart finds cured, or as it was.
TEST_CASE("speeds: an agent that begins again ends what was said before; what is slow stays so") {
  const model::Fabric fabric = small_zone();
  const model::Entity nic = model::entity(fabric.nics()[0]);
  const LinkId uplink = [&] {
    for (const LinkId link : fabric.out(fabric.nics()[0]))
      if (fabric.on_wire(link)) return link;
    return LinkId{};
  }();
  using Readings = std::vector<RateWatch::Reading>;
  for (const bool cured : {true, false}) {
    CAPTURE(cured);
    Book book(fabric);
    const auto tell = [&](std::span<const RateWatch::Change> changes, Timestamp t) {
      for (const auto& [part, share, is_back] : changes) {
        model::RecordSet set;
        model::Record row;
        row.t = row.until = t;
        row.entity = part;
        CHECK(!is_back);
        row.kind = share < 1 ? model::EventKind::link_slow : model::EventKind::info;
        row.attrs = set.add_attributes({{"rate_share", fmt::format("{:.4g}", share)}});
        book.take(set, row);
      }
    };
    RateWatch before;
    tell(before.take(Readings{{nic, 400e9, 400e9}}, {1}), {1});
    tell(before.take(Readings{{nic, 400e9, 100e9}}, {2}), {2});
    CHECK(book.conditions({3}, {}).at(uplink).rate == 0.25);
    CHECK(RateWatch().take(Readings{{nic, 400e9, 100e9}}, {4}).empty());  // knows of nothing
    RateWatch same = before;
    CHECK(same.take(Readings{{nic, 400e9, 400e9}}, {3}).at(0).is_back);
    RateWatch after(before.most());
    tell(after.take(Readings{{nic, 400e9, cured ? 400e9 : 100e9}}, {4}), {4});
    const Conditions now = book.conditions({5}, {});
    CHECK(now.contains(uplink) == !cured);
    if (!cured) CHECK(now.at(uplink).rate == 0.25);
  }
}

TEST_CASE("conditions, states and back") {
  const model::Fabric fabric = small_zone();
  model::State state;
  state.set(LinkId(4), {.rate_factor = 0.5});
  state.set(fabric.find_node({"ctsw:1", {}}).value(), {.health = model::Health::down});
  const Conditions at = conditions_of(fabric, state);
  const model::LiveView one(fabric, state), other(fabric, state_of(at));
  for (const LinkId link : fabric.links())
    if (fabric.on_wire(link))
      CHECK(one.bytes_per_s[link.index()] == approx(other.bytes_per_s[link.index()]));
}

// 32 GPUs on 4 hosts, tp 2 inside of each: two groups of 16, which call the same at the same time.
TEST_CASE("calls of a training job, and advice for its groups side by side") {
  const auto file = model::parse_scenario(
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: 8}\n"
      "jobs: [{name: t, model: llama3-8b, gpus: 32, parallel: {tp: 2, dp: 16}, batch: 64}]\n",
      "train.yaml", {});
  REQUIRE(file.has_value());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  REQUIRE(setup.has_value());
  const auto jobs = plan::read_jobs(*setup, scenario.section("jobs"), scenario.seed);
  REQUIRE_MESSAGE(jobs.has_value(), (jobs ? "" : jobs.error().text()));
  std::vector<Call> calls = calls_of(setup->fabric, *jobs);
  REQUIRE(std::ranges::any_of(calls, [](const Call& c) { return c.groups.size() == 2; }));
  for (const Call& call : calls) {
    CHECK(call.job == "t");
    CHECK(call.ranks() == 32);  // two groups of 16, or all: the norm of the gradients
    CHECK((call.groups.size() == 2 || call.groups.size() == 1));
    CHECK(call.bytes > 0);
  }
  CHECK(advise(*setup, calls, {}, 1)->rows.empty());  // all is well
  model::State state;
  for (const LinkId link : setup->fabric.out(setup->fabric.nics()[7]))
    state.set(link, {.rate_factor = 0.1});
  const auto advised = advise(*setup, calls, state, 1);
  REQUIRE(advised.has_value());
  REQUIRE_FALSE(advised->rows.empty());
  for (const Advice& row : advised->rows) {
    CHECK(row.job == layout::hash_of("t"));
    CHECK(row.nodes == 4);
    CHECK((row.ranks == 16 || row.ranks == 32));
    CHECK(row.share_ppm <= 980'000);
    CHECK(row.bytes_from < row.bytes_to);
  }
  calls[0].groups.resize(1, std::vector<model::NodeId>(600));
  calls[0].groups[0].resize(600);
  CHECK(advise(*setup, {calls.data(), 1}, state, 1)->too_large == 1);
}

}  // namespace
}  // namespace weft::operate::health
