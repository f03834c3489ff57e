// `weft up --lab` as somebody new would use it: a fault is found, the part drained, mended, tested
// and taken back, and nothing stays behind.
#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/test_skip.hpp"
#include "lab_kit.hpp"

using namespace weft;
using namespace weft::lab_test;
using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Sanitizers make everything some times slower: there only what happens counts, not when.
#ifdef WEFT_SANITIZED
constexpr double slower = 10;
#else
constexpr double slower = 1;
#endif

class UpLab {
 public:
  UpLab() : name_(fmt::format("u{}", ::getpid() % 1'000'000)) {
#ifdef WEFT_SANITIZED
    probe_less();
#endif
    up_ = scratch_.start({"up", "--lab", "site", "--name", name_}, "up.out");
  }
  ~UpLab() {
    stop();
    scratch_.run({"lab", "down", "--name", name_});
  }
  bool says(std::chrono::seconds patience, const std::string& text) const {
    return wait_until(patience,
                      [&] { return scratch_.read("up.out").find(text) != std::string::npos; });
  }
  static bool wait_until(std::chrono::milliseconds patience, const std::function<bool()>& so) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(slower * patience);
    while (Clock::now() < end) {
      if (so()) return true;
      std::this_thread::sleep_for(50ms);
    }
    return so();
  }
  Outcome up(std::vector<std::string> options) const {
    options.insert(options.begin(), {"up", "--lab", "site"});
    return scratch_.run(options);
  }
  json status() const { return json::parse(up({"--status", "--json"}).out, nullptr, false); }
  std::string story() const { return scratch_.read("up.out") + scratch_.read("up.out.err"); }
  int wait() { return cli_test::wait_for(std::exchange(up_, 0)); }

  const std::string& name() const { return name_; }
  const Scratch& scratch() const { return scratch_; }

 private:
  void stop() {
    if (up_ == 0) return;
    ::kill(up_, SIGTERM);
    wait();
  }
  // As many probes as by default would take more than two processors: none would be answered in
  // time. The site is made without a fault first, to be changed.
  void probe_less() {
    up_ = scratch_.start({"up", "--lab", "site", "--name", name_, "--no-fault"}, "up.out");
    CHECK_MESSAGE(says(30s, "all hosts probe"), story());
    stop();
    const std::string all = "{key: probe.key}", file = "site/site.yaml";
    std::string text = scratch_.read(file);
    REQUIRE(text.find(all) != std::string::npos);
    scratch_.write(file, text.replace(text.find(all), all.size(),
                                      "{key: probe.key, crossings: 250, flows: 8}"));
  }

  Scratch scratch_;
  std::string name_;
  int up_ = 0;
};

TEST_CASE("weft up --lab: a fault, its case, a drain, its repair, its return") {
  if (skips_without_lab()) return;
  if (::geteuid() != 0) return skip_test("a lab with a service needs root");
  const auto start = Clock::now();
  UpLab lab;
  REQUIRE_MESSAGE(lab.says(30s, "all hosts probe"), lab.story());
  REQUIRE_MESSAGE(lab.says(10s, "fault: ctsw:1->rtsw:3"), lab.story());
  REQUIRE_MESSAGE(lab.says(20s, "rtsw:3--ctsw:1, "), lab.story());
  REQUIRE_MESSAGE(lab.says(20s, "repair of rtsw:3--ctsw:1: repairing"), lab.story());
  // Probes are planned around the drained cable at once.
  CHECK_MESSAGE(lab.wait_until(5s,
                               [&] {
                                 const json now = lab.status();
                                 const std::string reason =
                                     now.value("/plan/reason"_json_pointer, "");
                                 // Both, where the network confirms the drain late.
                                 return (reason == "parts out of service changed" ||
                                         reason == "a drain or a return took effect") &&
                                        !now["plan"]["busy"].get<bool>();
                               }),
                lab.status().dump(1));
  const json drained = lab.status();
  CHECK(drained["plan"]["took_s"].get<double>() <= 5 * slower);
  CHECK(drained["ready"] == true);
  for (const json& process : drained["processes"])
    CHECK_MESSAGE(process["restarts"] == 0, process.dump());
  CHECK(lab.scratch().read("site/site.state/plan.jsonl").find("ctsw:1->rtsw:3") ==
        std::string::npos);

  // A second one starts nothing, and says what runs.
  const Outcome again = lab.up({});
  CHECK(again.status == 0);
  CHECK_MESSAGE(again.out.find("the service is ready") != std::string::npos, again.out);
  CHECK(lab.status()["pid"] == drained["pid"]);

  CHECK(lab.scratch().run({"lab", "heal", "all", "--name", lab.name()}).status == 0);
  REQUIRE_MESSAGE(lab.says(30s, "repair of rtsw:3--ctsw:1: returned"), lab.story());
  CHECK_MESSAGE(
      lab.wait_until(
          8s,
          [&] {
            return lab.scratch().read("site/site.state/plan.jsonl").find("ctsw:1->rtsw:3") !=
                   std::string::npos;
          }),
      lab.status().dump(1));
  const Outcome down = lab.up({"--down"});
  CHECK_MESSAGE(down.status == 0, down.err);
  CHECK(lab.wait() == 0);
  CHECK(lab.scratch().run({"lab", "down", "--name", lab.name()}).out.find("nothing to remove") !=
        std::string::npos);
  CHECK(lab.up({"--status"}).status == 1);
  MESSAGE("all of it took " << std::chrono::duration<double>(Clock::now() - start).count() << " s\n"
                            << lab.scratch().read("up.out"));
}

}  // namespace
