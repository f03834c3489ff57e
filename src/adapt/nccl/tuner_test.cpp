// The plugin as NCCL holds it, against made-up tables, any bytes, and simulations.
#include "adapt/nccl/tuner.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>

#include "adapt/live/system_clock.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "base/test_folder.hpp"
#include "model/scenario/scenario.hpp"
#include "operate/health/advise.hpp"
#include "operate/health/book.hpp"
#include "plan/run/run.hpp"

namespace weft::adapt::nccl {
namespace {

namespace health = operate::health;
using health::Advice;
using health::HealthTable;

// Where NCCL's public headers have the members on 64-bit Linux.
static_assert(sizeof(Tuner3) == 32 && sizeof(Tuner4) == 32 && sizeof(Tuner5) == 32);
static_assert(offsetof(Tuner3, init) == 8 && offsetof(Tuner3, choose) == 16 &&
              offsetof(Tuner3, destroy) == 24);
static_assert(offsetof(Tuner4, init) == 8 && offsetof(Tuner4, choose) == 16 &&
              offsetof(Tuner4, destroy) == 24);
static_assert(offsetof(Tuner5, init) == 8 && offsetof(Tuner5, choose) == 16 &&
              offsetof(Tuner5, finalize) == 24);

constexpr int algorithms_n = 7, protocols_n = 3;  // NCCL 2.22 to 2.30
using Costs = std::array<float, std::size_t{algorithms_n} * protocols_n>;
enum Algorithm : std::uint8_t { tree = 0, ring = 1, nvls_tree = 5 };
constexpr std::uint8_t all_reduce = 4, simple = 2;
constexpr std::size_t gib = std::size_t{1} << 30;
constexpr std::uint32_t hosts_n = 4, ranks_n = 32;

// What NCCL would have: ring is its choice; NVLS and CollNet are not there.
Costs usual_costs() {
  Costs out;
  out.fill(-1);
  constexpr std::size_t row = protocols_n;
  float less = 0;
  for (std::size_t p = 0; p < row; ++p, less += 10) {
    out[tree * row + p] = 300 - less;
    out[ring * row + p] = 200 - less;
  }
  return out;
}

struct Answer {
  Costs costs;
  int algorithm = -1, protocol = -1, channels = 0;
};
bool is_untouched(const Answer& a) { return a.channels == 0 && a.costs == usual_costs(); }

// As NCCL finds the least.
void choose_least(Answer& a) {
  float least = 3e38F;
  for (int i = 0; i < algorithms_n * protocols_n; ++i)
    if (const float cost = a.costs[static_cast<std::size_t>(i)]; cost >= 0 && cost < least) {
      least = cost;
      a.algorithm = i / protocols_n;
      a.protocol = i % protocols_n;
    }
}

// The plugin, loaded in this process; its settings are the environment's.
struct Library {
  void* handle = ::dlopen(WEFT_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  template <class T>
  T* symbol(const char* name) const {
    WEFT_CHECK(handle != nullptr);
    auto* out = reinterpret_cast<T*>(::dlsym(handle, name));
    WEFT_CHECK(out != nullptr);
    return out;
  }
};

struct Communicator {
  const Library library;
  const Tuner5& tuner = *library.symbol<const Tuner5>("ncclTunerPlugin_v5");
  void* context = nullptr;

  explicit Communicator(std::size_t ranks = ranks_n, std::size_t hosts = hosts_n) {
    WEFT_CHECK(tuner.init(&context, 1, ranks, hosts, nullptr, nullptr, nullptr) == success);
  }
  ~Communicator() { tuner.finalize(context); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Answer ask(std::size_t bytes = gib, int operation = all_reduce,
             Costs costs = usual_costs()) const {
    Answer out{.costs = costs};
    WEFT_CHECK(tuner.choose(context, operation, bytes, 1,
                            reinterpret_cast<float**>(out.costs.data()), algorithms_n, protocols_n,
                            0, &out.channels) == success);
    choose_least(out);
    return out;
  }
  int adopt(std::string_view table) const {
    return library.symbol<int(const void*, std::size_t)>("weft_health_adopt")(table.data(),
                                                                              table.size());
  }
};

Timestamp wall() { return live::SystemClock().wall(); }

HealthTable advice_table(std::uint8_t algorithm, std::uint8_t channels, const char* job = "j1") {
  HealthTable t{.written = wall(), .rails = {}, .links = {}, .advice = {}};
  t.rails.push_back({0, 0, 4, 0, 0, 1, 0});
  t.links.push_back({"nic:7->rtsw:0", 0.5, 0, health::layout::evidence_slow, 7});
  t.advice.push_back({.job = health::layout::hash_of(job),
                      .bytes_from = 1 << 20,
                      .bytes_to = 4 * gib,
                      .nodes = hosts_n,
                      .ranks = ranks_n,
                      .operation = all_reduce,
                      .algorithm = algorithm,
                      .protocol = simple,
                      .channels = channels,
                      .share_ppm = 500'000});
  return t;
}

// A process of a job, which loads the plugin with this environment; status 0 where `work` is done.
int in_job(const std::vector<std::pair<const char*, std::string>>& environment,
           const std::function<void()>& work) {
  std::cout.flush();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    for (const char* name : {"WEFT_NCCL_HEALTH", "WEFT_NCCL_HEALTH_FOLLOW", "SLURM_JOB_ID"})
      ::unsetenv(name);
    ::setenv("WEFT_NCCL_JOB", "j1", 1);
    ::setenv("WEFT_NCCL_HEALTH_LIVE", "/nonexistent", 1);
    for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
    work();
    ::_exit(0);
  }
  int status = 0;
  WEFT_CHECK(::waitpid(pid, &status, 0) == pid);
  return status;
}

// Whatever fails in there ends it with another status.
void all_well_in_job(const std::vector<std::pair<const char*, std::string>>& environment,
                     const std::function<void()>& work) {
  CHECK(in_job(environment, work) == 0);
}

constexpr std::size_t cell(std::size_t algorithm, std::size_t protocol) {
  return algorithm * protocols_n + protocol;
}

TEST_CASE("tuner: without a table NCCL's choice stands, on each version of the interface") {
  all_well_in_job({}, [] {
    const Library library;
    Answer a{.costs = usual_costs()};
    auto** costs = reinterpret_cast<float**>(a.costs.data());
    void* context = nullptr;
    const auto& three = *library.symbol<const Tuner3>("ncclTunerPlugin_v3");
    WEFT_CHECK(std::strcmp(three.name, "weft") == 0);
    WEFT_CHECK(three.init(ranks_n, hosts_n, nullptr, &context) == success);
    WEFT_CHECK(three.choose(context, all_reduce, gib, 1, costs, 7, 3, &a.channels) == success);
    WEFT_CHECK(three.destroy(context) == success);
    const auto& four = *library.symbol<const Tuner4>("ncclTunerPlugin_v4");
    WEFT_CHECK(four.init(ranks_n, hosts_n, nullptr, &context) == success);
    WEFT_CHECK(four.choose(context, all_reduce, gib, 1, costs, 7, 3, 1, &a.channels) == success);
    WEFT_CHECK(four.destroy(context) == success);
    const auto& five = *library.symbol<const Tuner5>("ncclTunerPlugin_v5");
    WEFT_CHECK(five.init(&context, 7, ranks_n, hosts_n, nullptr, nullptr, nullptr) == success);
    WEFT_CHECK(five.choose(context, all_reduce, gib, 1, costs, 7, 3, 1, &a.channels) == success);
    WEFT_CHECK(five.choose(nullptr, all_reduce, gib, 1, costs, 7, 3, 1, &a.channels) == success);
    WEFT_CHECK(five.choose(context, all_reduce, gib, 1, nullptr, 7, 3, 1, nullptr) == success);
    WEFT_CHECK(five.finalize(context) == success);
    WEFT_CHECK(is_untouched(a));
  });
}

TEST_CASE("tuner: advice is followed where it fits, and where NCCL can") {
  all_well_in_job({}, [] {
    const Communicator c;
    WEFT_CHECK(c.adopt(health::encode(advice_table(tree, 14))) == 1);
    Answer a = c.ask();
    WEFT_CHECK(a.algorithm == tree && a.protocol == simple && a.channels == 14);
    WEFT_CHECK(a.costs[cell(tree, simple)] == 280);  // its own estimate stays
    WEFT_CHECK(a.costs[cell(4, 0)] == -1);           // what cannot be stays so
    WEFT_CHECK(is_untouched(c.ask((1 << 20) - 1)));
    WEFT_CHECK(!is_untouched(c.ask(1 << 20)));
    WEFT_CHECK(is_untouched(c.ask(4 * gib)));
    WEFT_CHECK(is_untouched(c.ask(gib, 2)));
    WEFT_CHECK(is_untouched(Communicator(16, 2).ask()));
    WEFT_CHECK(is_untouched(Communicator(32, 2).ask()));
    Costs no_tree = usual_costs();
    for (std::size_t p = 0; p < 3; ++p) no_tree[cell(tree, p)] = -1;  // NCCL_ALGO=ring
    a = c.ask(gib, all_reduce, no_tree);
    WEFT_CHECK(a.costs == no_tree && a.channels == 0);
    Costs no_simple = usual_costs();
    no_simple[cell(tree, simple)] = -1;  // NCCL_PROTO=^simple
    a = c.ask(gib, all_reduce, no_simple);
    WEFT_CHECK(a.algorithm == tree && a.protocol == 1 && a.channels == 14);
    // An algorithm that NCCL does not have, and advice for another job.
    WEFT_CHECK(c.adopt(health::encode(advice_table(99, 14))) == 1);
    WEFT_CHECK(is_untouched(c.ask()));
    WEFT_CHECK(c.adopt(health::encode(advice_table(tree, 14, "j2"))) == 1);
    WEFT_CHECK(is_untouched(c.ask()));
    WEFT_CHECK(c.adopt("no table") == 0);
    WEFT_CHECK(is_untouched(c.ask()));
  });
  all_well_in_job({{"WEFT_NCCL_JOB", ""}, {"SLURM_JOB_ID", "4711"}}, [] {
    ::unsetenv("WEFT_NCCL_JOB");
    const Communicator c;
    WEFT_CHECK(c.adopt(health::encode(advice_table(ring, 7, "4711"))) == 1);
    WEFT_CHECK(c.ask().channels == 7);
  });
}

TEST_CASE("tuner: a copy that the ranks are given at the start") {
  const TestFolder folder;
  const auto with = [&](std::int64_t age_ns) {
    const std::string path = folder.file(fmt::format("copy{}", age_ns));
    HealthTable t = advice_table(tree, 14);
    t.written.ns -= age_ns;
    auto file = health::Publisher::open(path);
    WEFT_CHECK(file.has_value() && file->publish(health::encode(t)).has_value());
    return path;
  };
  all_well_in_job({{"WEFT_NCCL_HEALTH", with(60 * ns_per_s)}}, [] {
    const Communicator c;
    WEFT_CHECK(c.ask().channels == 14);
  });
  // Of any age, by whatever clock: ranks that judged it by theirs would choose apart, and hang.
  for (const std::int64_t age_s : {86'400, -86'400})
    all_well_in_job({{"WEFT_NCCL_HEALTH", with(age_s * ns_per_s)}}, [] {
      const Communicator c;
      WEFT_CHECK(c.ask().channels == 14);
    });
  all_well_in_job({{"WEFT_NCCL_HEALTH", folder.write("text", std::string(40'000, 'x'))}}, [] {
    const Communicator c;
    WEFT_CHECK(is_untouched(c.ask()));
  });
}

TEST_CASE("tuner: follows a live table as it changes, grows old, is cut short and comes back") {
  const TestFolder folder;
  const std::string path = folder.file("live");
  all_well_in_job({{"WEFT_NCCL_HEALTH_LIVE", path}, {"WEFT_NCCL_HEALTH_FOLLOW", "1"}}, [&] {
    const Communicator c;
    const auto pause = [] { ::usleep(120'000); };  // it looks ten times a second
    WEFT_CHECK(is_untouched(c.ask()));
    auto file = health::Publisher::open(path);
    WEFT_CHECK(file->publish(health::encode(advice_table(tree, 14))).has_value());
    pause();
    WEFT_CHECK(c.ask().channels == 14);
    HealthTable t = advice_table(ring, 7);
    t.valid_ns = ns_per_s / 2;
    WEFT_CHECK(file->publish(health::encode(t)).has_value());
    pause();
    WEFT_CHECK(c.ask().channels == 7);
    ::usleep(500'000);
    WEFT_CHECK(is_untouched(c.ask()));  // its writer is silent
    WEFT_CHECK(file->publish(health::encode(advice_table(tree, 9))).has_value());
    pause();
    WEFT_CHECK(c.ask().channels == 9);
    WEFT_CHECK(::truncate(path.c_str(), 70) == 0);
    WEFT_CHECK(c.ask().channels == 9);  // until it looks
    pause();
    WEFT_CHECK(c.ask().channels == 9);  // its head says that nothing is new
    HealthTable none = advice_table(tree, 9);
    none.advice.clear();
    file = health::Publisher::open(folder.file("other"));
    WEFT_CHECK(file->publish(health::encode(none)).has_value());
    WEFT_CHECK(::rename(folder.file("other").c_str(), path.c_str()) == 0);
    WEFT_CHECK(file->publish(health::encode(none)).has_value());
    pause();
    WEFT_CHECK(is_untouched(c.ask()));
    WEFT_CHECK(::unlink(path.c_str()) == 0);
    pause();
    WEFT_CHECK(is_untouched(c.ask()));
  });
}

TEST_CASE("tuner: rank 0 reads, all adopt") {
  const TestFolder folder;
  const std::string path = folder.file("live");
  auto file = health::Publisher::open(path);
  REQUIRE(file->publish(health::encode(advice_table(tree, 14))).has_value());
  all_well_in_job({{"WEFT_NCCL_HEALTH_LIVE", path}}, [&] {
    const Communicator c;
    WEFT_CHECK(is_untouched(c.ask()));  // nobody has adopted it
    const auto read = *c.library.symbol<std::size_t(void*, std::size_t)>("weft_health_read");
    std::array<char, 16'384> bytes{};
    const std::size_t size = read(bytes.data(), bytes.size());
    WEFT_CHECK(size == 40 + 32 + 72 + 40 && read(bytes.data(), size - 1) == 0);
    WEFT_CHECK(c.adopt({bytes.data(), size}) == 1 && c.ask().channels == 14);
    WEFT_CHECK(c.adopt({}) == 0 && is_untouched(c.ask()));
    HealthTable old = advice_table(tree, 14);
    old.written.ns -= 11 * ns_per_s;
    WEFT_CHECK(file->publish(health::encode(old)).has_value());
    WEFT_CHECK(read(bytes.data(), bytes.size()) == 0);
  });
}

// Any table that passes for one, on any costs: what NCCL can do stays possible, and what it cannot
// stays impossible.
TEST_CASE("tuner: no table makes NCCL's choice impossible") {
  all_well_in_job({}, [] {
    Rng rng(5);
    const Communicator c;
    for (std::uint64_t i = 0; i < test_effort(20'000); ++i) {
      HealthTable t = advice_table(static_cast<std::uint8_t>(rng.below(9)),
                                   static_cast<std::uint8_t>(rng.below(256)));
      t.advice[0].protocol = static_cast<std::uint8_t>(rng.below(5));
      std::string bytes = health::encode(t);
      for (std::uint64_t n = rng.below(3); n > 0; --n)
        bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
      if (rng.below(2) == 0) {  // so that damage gets past the sum
        const std::uint64_t sum = health::layout::sum_of(bytes.data() + 8, bytes.size() - 8);
        std::memcpy(bytes.data(), &sum, sizeof sum);
      }
      c.adopt(bytes);
      Costs costs = usual_costs();
      constexpr std::array<float, 6> odd{-1, 0, 1e-30F, 3e38F, INFINITY, NAN};
      for (float& cost : costs)
        if (rng.below(3) == 0) cost = odd[rng.below(odd.size())];
      Answer before{.costs = costs};
      choose_least(before);
      const Answer after = c.ask(rng.below(8 * gib), all_reduce, costs);
      WEFT_CHECK((before.algorithm < 0) == (after.algorithm < 0));
      WEFT_CHECK(after.channels >= 0 && after.channels <= 255);
      for (std::size_t k = 0; k < costs.size(); ++k)
        WEFT_CHECK((costs[k] >= 0) == (after.costs[k] >= 0));
    }
  });
}

// A call has to cost less than NCCL's own choice of some microseconds.
TEST_CASE("tuner: time of a call") {
  all_well_in_job({}, [] {
    HealthTable t = advice_table(tree, 14, "another");
    t.advice.resize(95, t.advice[0]);
    t.advice.push_back(advice_table(tree, 14).advice[0]);
    const Communicator c;
    WEFT_CHECK(c.adopt(health::encode(t)) == 1);
    double least = 1e9;
    for (int i = 0; i < 20; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (int k = 0; k < 1'000; ++k) WEFT_CHECK(c.ask().channels == 14);
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - begin;
      least = std::min(least, spent.count() / 1'000);
    }
    fmt::print("tuner: {:.0f} ns a call with the last of 96 rows\n", least);
    std::fflush(stdout);
#ifdef NDEBUG  // says nothing of a build that is not optimised
    WEFT_CHECK(least < 5'000);
#endif
  });
}

std::vector<double> times_of(const std::string& yaml) {
  const auto file = model::parse_scenario(yaml, "test.yaml", {});
  WEFT_CHECK(file.has_value());
  const auto outcome = plan::run_scenario(*file, {});
  WEFT_CHECK(outcome.has_value());
  std::vector<double> out;
  for (const model::VariantOutcome& v : outcome->variants)
    out.push_back(v.completion.unfinished > 0 ? INFINITY : v.jobs.front().time_mean_s);
  return out;
}

constexpr std::uint32_t channels_all = 16;
struct Setting {
  const char* name;
  std::uint8_t number;
};
constexpr std::array<Setting, 3> settings_all{
    {{"tree", tree}, {"ring", ring}, {"nvls_tree", nvls_tree}}};
constexpr const char* the_job = "name: j1, collective: all_reduce, gpus: 32, bytes: 1 GiB";

// A zone with slow NICs and uplinks, and a variant for every setting: NCCL's own, then each
// algorithm with 1 to 16 channels.
std::string random_zone(Rng& rng, int i) {
  std::string faults;
  for (std::uint64_t n = 1 + rng.below(2); n > 0; --n) {
    const bool is_nic = rng.below(2) == 0;
    const std::uint64_t which = rng.below(32), factor = 1 + rng.below(8);
    faults += is_nic ? fmt::format("{{kind: nic_degraded, nic: \"nic:{}\", factor: 0.{}}}, ", which,
                                   factor)
                     : fmt::format(
                           "{{kind: link_degraded, tier: rtsw->ctsw, count: {}, pick: "
                           "random, factor: 0.{}}}, ",
                           1 + which % 3, factor);
  }
  std::string out = fmt::format(
      "fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: {}}}\n"
      "collectives: {{cost: line_rate}}\nrouting: {{scheme: {}}}\nfaults: [{}]\nseed: {}\n"
      "jobs: [{{{}}}]\ncompare:\n  auto: {{}}\n",
      8 + i % 5, i % 2 == 0 ? "optimal" : "e_ecmp, qps: 4", faults, i, the_job);
  for (const Setting& setting : settings_all)
    for (std::uint32_t c = 1; c <= channels_all; ++c)
      out += fmt::format("  {0} {1}: {{jobs: [{{{2}, algorithm: {0}, channels: {1}}}]}}\n",
                         setting.name, c, the_job);
  return out;
}

// The table that a service would write of the zone's state at the start.
HealthTable table_for(const std::string& yaml) {
  const auto file = model::parse_scenario(yaml, "test.yaml", {});
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  WEFT_CHECK(setup.has_value());
  const auto jobs = plan::read_jobs(*setup, scenario.section("jobs"), scenario.seed);
  WEFT_CHECK(jobs.has_value());
  const model::State& now = setup->changes.front().state;
  const auto advised =
      health::advise(*setup, health::calls_of(setup->fabric, *jobs), now, scenario.seed);
  WEFT_CHECK(advised.has_value());
  HealthTable out =
      health::table_of(setup->fabric, health::conditions_of(setup->fabric, now), wall());
  out.advice = advised->rows;
  return out;
}

// Which variant of random_zone() NCCL would run; 0: its own.
std::size_t variant_chosen(const HealthTable& table) {
  const TestFolder folder;
  const std::string path = folder.file("table");
  auto published = health::Publisher::open(path);
  WEFT_CHECK(published->publish(health::encode(table)).has_value());
  const int status = in_job({{"WEFT_NCCL_HEALTH", path}}, [] {
    Costs costs = usual_costs();
    costs[cell(nvls_tree, simple)] = 250;
    const Answer a = Communicator().ask(gib, all_reduce, costs);
    if (a.costs == costs && a.channels == 0) ::_exit(0);
    const auto at = std::ranges::find(settings_all, a.algorithm, &Setting::number);
    const auto row = static_cast<std::uint32_t>(at - settings_all.begin());
    const auto channels = a.channels == 0 ? channels_all : static_cast<std::uint32_t>(a.channels);
    ::_exit(static_cast<int>(row * channels_all + channels));
  });
  WEFT_CHECK(WIFEXITED(status));
  return static_cast<std::size_t>(WEXITSTATUS(status));
}

// The second hand: the fluid engine runs every algorithm with every number of channels.
TEST_CASE("tuner: the best of all static settings, by simulation") {
  Rng rng(3);
  double gained = 0, worst_gap = 0, worst_loss = 0;
  int opinions = 0;
  constexpr int cases = static_cast<int>(test_effort(16));
  for (int i = 0; i < cases; ++i) {
    const std::string yaml = random_zone(rng, i);
    CAPTURE(yaml);
    const std::vector<double> s = times_of(yaml);
    REQUIRE(s.size() == 1 + settings_all.size() * channels_all);
    const std::size_t variant = variant_chosen(table_for(yaml));
    REQUIRE(variant < s.size());
    const double chosen = s[variant], best = *std::ranges::min_element(s);
    opinions += variant != 0 ? 1 : 0;
    gained += s[0] / chosen - 1;
    worst_gap = std::max(worst_gap, chosen / best - 1);
    worst_loss = std::max(worst_loss, chosen / s[0] - 1);
    CHECK(chosen <= 1.01 * s[0]);
  }
  MESSAGE("opinions in ", opinions, " of ", cases, ", mean gain ", gained / cases,
          ", worst against static ", worst_loss, ", against the best ", worst_gap);
  CHECK(opinions >= cases / 2);
  CHECK(gained / cases > 0.1);
  CHECK(worst_gap < 0.01);
}

}  // namespace
}  // namespace weft::adapt::nccl
