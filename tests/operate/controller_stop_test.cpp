// The threads of a service in one process, so that ThreadSanitizer sees all of them: stopped again
// and again while lines come, orders are carried out, notices are sent and pages are read.
#include <doctest/doctest.h>
#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.hpp"
#include "controller_kit.hpp"
#include "serve/api.hpp"
#include "serve/controller_thread.hpp"
#include "socket_client.hpp"

namespace weft::controller_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class RealClock final : public port::Clock {
 public:
  port::Instant now() override { return {ns(steady_clock::now())}; }
  Timestamp wall() override { return {ns(std::chrono::system_clock::now())}; }

 private:
  template <class Point>
  static std::int64_t ns(Point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  }
};

// Does as it is told, a little late.
class Actuator final : public port::Actuator {
 public:
  Status act(const port::Action& action) override {
    std::this_thread::sleep_for(2ms);
    if (action.kind == port::ActionKind::drain)
      out_.insert(action.entity);
    else
      out_.erase(action.entity);
    ++acts;
    return {};
  }
  Result<port::Service> state(std::string_view entity) override {
    std::this_thread::sleep_for(1ms);
    return out_.contains(std::string(entity)) ? port::Service::drained : port::Service::in_service;
  }
  Result<port::Check> check(std::string_view) override {
    std::this_thread::sleep_for(1ms);
    return port::Check{.sent = 10'000, .lost = 0};
  }
  std::atomic<int> acts = 0;

 private:
  std::set<std::string> out_;
};

class Receiver final : public port::Notifier {
 public:
  Status notify(const port::Notice&) override {
    std::this_thread::sleep_for(3ms);
    ++notices;
    return {};
  }
  std::atomic<int> notices = 0;
};

// The k-th line: one cable after another fails, as both of its ends say, and comes back later.
std::string flap(const std::string& id, std::int64_t now, int k) {
  const bool is_down = k % 4 < 2;
  const int cable = k / 640 + (is_down ? 2 : 0);
  const std::string rack = fmt::format("rtsw:{}", cable % 4);
  const std::string spine = fmt::format("ctsw:{}", cable / 4 % 4);
  return Life::record(id, now, k % 2 == 0 ? rack + "->" + spine : spine + "->" + rack,
                      is_down ? "link_down" : "link_up");
}

struct Work {
  int acts = 0, notices = 0;
  std::uint64_t acknowledged = 0;
  std::chrono::milliseconds longest{0};
};

// One life of a service; how long its end took.
class Round {
 public:
  explicit Round(World& world) : life_(world) {
    serve::Effectors effectors{
        .actuator = &actuator_,
        .forecast = [](const operate::repair::Order&) -> Result<operate::repair::Forecast> {
          return operate::repair::Forecast{};
        },
        .snapshot = [](const operate::repair::Order&, const model::Case&,
                       const std::vector<std::string>&) -> Result<std::string> {
          std::this_thread::sleep_for(2ms);
          return std::string("{}");
        },
        .notifiers = {&receivers_[0], &receivers_[1]}};
    loop_ = std::make_unique<serve::ControllerThread>(
        life_.controller(), clock_, bus_, std::move(effectors),
        [](Timestamp, Timestamp, std::uint64_t) { return Result<std::string>("{}"); },
        serve::ThreadLimits{.turn_ns = 2'000'000});
    socket_ = world.directory.file("s");
    auto api = serve::Api::listen({.listen = "unix:" + socket_, .limits = {.farewell = 2'000ms}},
                                  *loop_, life_.store(), bus_);
    REQUIRE_MESSAGE(api.has_value(), (api ? "" : api.error().text()));
    api_ = *std::move(api);
  }

  void run(int round, std::chrono::milliseconds time, Work& work) {
    std::vector<std::thread> threads;
    for (int sender = 0; sender < 2; ++sender)
      threads.emplace_back([this, round, sender] { send(round, sender); });
    threads.emplace_back([this] { read(); });
    threads.emplace_back([this] { listen(); });
    std::this_thread::sleep_for(time);
    const auto begin = steady_clock::now();
    api_->stop();
    loop_stopping_ = true;
    for (std::thread& thread : threads) thread.join();
    loop_.reset();
    const auto took = steady_clock::now() - begin;
    work.longest =
        std::max(work.longest, std::chrono::duration_cast<std::chrono::milliseconds>(took));
    work.acts += actuator_.acts;
    for (const Receiver& receiver : receivers_) work.notices += receiver.notices;
    work.acknowledged += acknowledged_;
  }

 private:
  // Straight into the loop, as the threads of syslog do.
  void send(int round, int sender) {
    for (int number = 0; !loop_stopping_; ++number) {
      std::vector<std::string> lines;
      for (int k = 0; k < 16; ++k)
        lines.push_back(flap(fmt::format("{}-{}-{}-{}", round, sender, number, k), clock_.wall().ns,
                             16 * number + k));
      const auto receipt = loop_->accept("record", std::move(lines), "");
      if (receipt) acknowledged_ += receipt->acknowledged;
      std::this_thread::sleep_for(1ms);
    }
  }
  void read() {
    for (std::size_t i = 0; !loop_stopping_; ++i) {
      constexpr std::array paths{"/v1/cases", "/metrics", "/", "/v1/ledger", "/readyz"};
      cli_test::socket_client(socket_).Get(paths[i % paths.size()]);
      cli_test::socket_client(socket_).Post("/v1/cases/none/hold", R"({"reason":"a test"})",
                                            "application/json");
    }
  }
  void listen() {
    while (!loop_stopping_)
      cli_test::socket_client(socket_).Get(
          "/v1/events", [this](const char*, std::size_t) { return !loop_stopping_; });
  }

  RealClock clock_;
  Actuator actuator_;
  std::array<Receiver, 2> receivers_;
  serve::Bus bus_;
  Life life_;
  std::string socket_;
  std::unique_ptr<serve::ControllerThread> loop_;
  std::unique_ptr<serve::Api> api_;
  std::atomic<bool> loop_stopping_ = false;
  std::atomic<std::uint64_t> acknowledged_ = 0;
};

void stop_again_and_again(int stops) {
  Rng rng(doctest::getContextOptions()->rand_seed);
  Work work;
  std::unique_ptr<World> world;
  for (int i = 0; i < stops; ++i) {
    if (i % 5 == 0) {  // or the store grows, and with it the time to start
      // Cases at once, so that there is something to do about them.
      world = std::make_unique<World>(
          serve::ProvisionalSettings{.wait_ns = 10'000'000, .lateness_ns = 10'000'000});
      world->policy = policy_of(
          "{defaults: {soak: 100 ms, verify: {packets: 10, lost: 0}}, "
          "timing: {early: 10 ms, recheck: 50 ms, confirm_every: 20 ms, grace: 50 ms, "
          "snapshot: 10 ms, hold: 0 s}, guards: {drains_per_hour: 1000, "
          "part_drains_per_hour: 1000, total: 1000, zone: 1000, "
          "rack: 1000, role: 1000, offender: {repairs: 1000, within: 1 d}}}");
    }
    world->now = RealClock().wall().ns;
    Round(*world).run(i, std::chrono::milliseconds(100 + rng.below(900)), work);
  }
  CHECK(work.longest < 5s);
  CHECK(work.acts > 0);
  CHECK(work.notices > 0);
  CHECK(work.acknowledged > 0);
  MESSAGE(stops << " stops, the longest " << work.longest.count() << " ms; " << work.acknowledged
                << " records, " << work.acts << " acts, " << work.notices << " notices");
}

}  // namespace

TEST_CASE("a loop that ends under load, twenty times") { stop_again_and_again(20); }

TEST_CASE("a loop that ends under load, two hundred times" * doctest::skip(true)) {
  stop_again_and_again(200);
}

}  // namespace weft::controller_test
