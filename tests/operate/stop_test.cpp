// A service that is asked to stop while lines, orders, notices and readers are under way: it ends
// within seconds, each time, and what it acknowledged is kept.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "adapt/sqlite/store.hpp"
#include "base/fd.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "base/test_skip.hpp"
#include "service_kit.hpp"
#include "webhook.hpp"

using namespace weft;
using namespace weft::operate_test;
using nlohmann::json;

namespace {

constexpr auto stop_limit = 5'000ms;

// Notices go to `hook`, which takes a little while for each.
constexpr auto notice_delay = 3ms;
std::string config_with(const cli_test::Webhook& hook) {
  return fmt::format(
      "provisional: {{wait: 20 ms, lateness: 20 ms}}\nnotify:\n  - webhook: {{url: \"{}\"}}\n",
      hook.url());
}

// What the service says of where it receives syslog.
int syslog_port(Service& service) {
  constexpr std::string_view mark = "listening at udp://127.0.0.1:";
  for (int i = 0; i < 2'000; ++i) {
    const std::string log = service.scratch().read("out.err");
    int port = 0;
    if (const auto at = log.find(mark); at != std::string::npos && log.find('\n', at) != log.npos)
      std::from_chars(log.data() + at + mark.size(), log.data() + log.size(), port);
    if (port > 0) return port;
    std::this_thread::sleep_for(5ms);
  }
  return 0;
}

// Everybody who uses a service, until the end.
class Load {
 public:
  Load(Service& service, int round, std::optional<int> syslog) : service_(service), round_(round) {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this, i] { post(i); });
    threads_.emplace_back([this] { read(); });
    threads_.emplace_back([this] { listen(); });
    if (syslog) threads_.emplace_back([this, port = *syslog] { send_syslog(port); });
  }
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  std::set<std::string> end() {
    is_over_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
    return acknowledged_;
  }
  std::atomic<int> refused = 0;  // lines that were not acknowledged

 private:
  // One cable after another fails and comes back, so that cases, repairs and notices begin and end
  // all the time.
  void post(int poster) {
    const auto begin = std::chrono::steady_clock::now();
    httplib::Client client = service_.client();
    client.set_keep_alive(true);
    for (int number = 0; !is_over_; ++number) {
      std::string lines;
      std::vector<std::string> ids;
      const std::int64_t k =
          std::int64_t{3} * round_ + (std::chrono::steady_clock::now() - begin) / 200ms;
      for (int i = 0; i < 16; ++i) {
        ids.push_back(fmt::format("{}-{}-{}-{}", round_, poster, number, i));
        const bool is_down = i % 2 == 0;
        lines +=
            line(ids.back(), cable(is_down ? k + 2 : k, poster), is_down ? "link_down" : "link_up");
      }
      const auto answer = client.Post("/v1/records", lines, "application/x-ndjson");
      if (!answer || answer->status != 200) {
        ++refused;
        std::this_thread::sleep_for(2ms);
        continue;
      }
      const std::lock_guard lock(mutex_);
      acknowledged_.insert(ids.begin(), ids.end());
    }
  }
  void read() {
    for (std::size_t i = 0; !is_over_; ++i) {
      constexpr std::array paths{"/v1/cases", "/metrics", "/", "/v1/ledger"};
      service_.client().Get(paths[i % paths.size()]);
      if (i % 8 == 0)
        service_.client().Post("/v1/cases/none/hold", R"({"reason":"a test"})", "application/json");
    }
  }
  void listen() {
    while (!is_over_)
      service_.client().Get("/v1/events", [this](const char*, std::size_t) { return !is_over_; });
  }
  void send_syslog(int port) const {
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string text = "<187>1 - ctsw:2 kernel - - - Ethernet1/1: Link is Down";
    while (!is_over_) {
      for (int i = 0; i < 10; ++i)
        ::sendto(socket.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&to),
                 sizeof to);
      std::this_thread::sleep_for(1ms);
    }
  }

  Service& service_;
  const int round_;
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::set<std::string> acknowledged_;
  std::vector<std::thread> threads_;
};

struct Summary {
  int stops = 0;
  std::vector<std::chrono::milliseconds> took;
  std::set<std::string> acknowledged;

  void add(Service& service, const Service::End& end) {
    ++stops;
    took.push_back(end.took);
    const std::string log = service.scratch().read("out.err");
    INFO("stop " << stops << ": status " << end.status << " after " << end.took.count()
                 << " ms; it wrote:\n"
                 << log);
    CHECK(end.status == 0);
    CHECK(end.took < stop_limit);
    // Nothing here hangs, so that it has no reason to give up on anything.
    CHECK(log.find("work in progress") == std::string::npos);
    CHECK(log.find("ThreadSanitizer") == std::string::npos);
  }
  void check(const std::string& store) {
    auto opened = adapt::sqlite::open_sqlite(store);
    REQUIRE(opened.has_value());
    const auto events = (*opened)->events(1, SIZE_MAX);
    REQUIRE(events.has_value());
    std::map<std::string, int> kept;
    for (const port::StoredEvent& event : *events)
      if (event.feed == "record") ++kept[json::parse(event.line)["id"]];
    std::size_t missing = 0, doubled = 0;
    for (const std::string& id : acknowledged) missing += kept.contains(id) ? 0 : 1;
    for (const auto& [id, count] : kept) doubled += count > 1 ? 1 : 0;
    CHECK(missing == 0);
    CHECK(doubled == 0);
    std::ranges::sort(took);
    MESSAGE(stops << " stops, median " << took[took.size() / 2].count() << " ms, longest "
                  << took.back().count() << " ms; " << acknowledged.size()
                  << " records acknowledged, " << missing << " missing, " << doubled << " doubled");
    acknowledged.clear();  // what follows goes into another store
  }
};

void stop_under_load(int stops) {
  Rng rng(doctest::getContextOptions()->rand_seed);
  const cli_test::Webhook hook(notice_delay);
  Service service(config_with(hook));
  Summary summary;
  const std::string store = service.scratch().path() + "/weft.db";
  for (int i = 0; i < stops; ++i) {
    if (i > 0 && i % 20 == 0) {  // a store that grows takes longer to be read at each start
      summary.check(store);
      for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(store + end);
    }
    service.start({"--syslog", "udp://127.0.0.1:0"});
    const int port = syslog_port(service);
    REQUIRE(port > 0);
    Load load(service, i, port);
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + rng.below(700)));
    summary.add(service, service.stop_within(SIGTERM, 4 * stop_limit));
    summary.acknowledged.merge(load.end());
  }
  CHECK(summary.acknowledged.size() > 100);
  const std::string effects = service.scratch().read("effects");
  CHECK_FALSE(effects.empty());  // or nobody was at work
  MESSAGE(std::ranges::count(effects, '\n') << " drains and returns");
  summary.check(store);
}

// A small disk in a namespace of this process alone. False where that is not allowed.
bool mount_small_disk(const std::string& at) {
  std::filesystem::create_directory(at);
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=6m") == 0;
}

void stop_after_full_disk(int stops) {
  const cli_test::Webhook hook(notice_delay);
  Service service(config_with(hook));
  const std::string disk = service.scratch().path() + "/disk";
  if (!mount_small_disk(disk))
    return skip_test("a small disk needs the right to mount (run as root)");
  Summary summary;
  for (int i = 0; i < stops; ++i) {
    service.start({"--syslog", "udp://127.0.0.1:0"}, "disk/weft.db");
    const int port = syslog_port(service);
    REQUIRE(port > 0);
    Load load(service, i, port);
    // What takes the room is somebody else's, and goes away again every other time.
    std::ofstream(disk + "/filler") << std::string(std::size_t{6} << 20, 'x');
    for (int k = 0; k < 2'000 && load.refused == 0; ++k) std::this_thread::sleep_for(5ms);
    CHECK(load.refused > 0);
    if (i % 2 == 1) {
      std::filesystem::remove(disk + "/filler");
      std::this_thread::sleep_for(300ms);
    }
    summary.add(service, service.stop_within(SIGTERM, 4 * stop_limit));
    summary.acknowledged.merge(load.end());
    std::filesystem::remove(disk + "/filler");
    // Room for the next round.
    if (i % 4 == 3) {
      summary.check(disk + "/weft.db");
      for (const char* name : {"/weft.db", "/weft.db-wal", "/weft.db-shm"})
        std::filesystem::remove(disk + name);
    }
  }
  ::umount2(disk.c_str(), MNT_DETACH);
}

}  // namespace

// Under sanitizers fewer times.
TEST_CASE("stopped twenty times under load") {
  stop_under_load(std::max(10, static_cast<int>(test_effort(20))));
}

TEST_CASE("stopped two hundred times under load" * doctest::skip(true)) { stop_under_load(200); }

TEST_CASE("full disk: stopped eight times" * doctest::skip(true)) { stop_after_full_disk(8); }

TEST_CASE("full disk: stopped a hundred times, long" * doctest::skip(true)) {
  stop_after_full_disk(100);
}

TEST_CASE("a command that hangs does not hold up the stop") {
  Service service("provisional: {wait: 20 ms, lateness: 20 ms}\n");
  std::string hanging = hands;
  hanging.insert(hanging.find("  drain) ") + 9, "touch hangs; sleep 20; ");
  service.scratch().write("hands", hanging);
  REQUIRE(::chmod((service.scratch().path() + "/hands").c_str(), 0755) == 0);
  service.start();
  for (int end = 0; end < 2; ++end)
    REQUIRE(service.post(line(fmt::format("d{}", end), cable(0, end), "link_down")));
  for (int i = 0; i < 4'000 && !service.scratch().has("hangs"); ++i)
    std::this_thread::sleep_for(10ms);
  REQUIRE(service.scratch().has("hangs"));
  const auto end = service.stop_within(SIGTERM, 4 * stop_limit);
  CHECK(end.status == 0);
  CHECK(end.took < stop_limit);
  CHECK(service.scratch().read("out.err").find("work in progress") != std::string::npos);
}
