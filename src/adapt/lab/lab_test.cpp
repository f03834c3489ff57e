// A lab on real namespaces. Skipped, with the reason, where this machine does not allow one.
#include "adapt/lab/lab.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "adapt/lab/build.hpp"
#include "adapt/lab/doctor.hpp"
#include "adapt/lab/drain.hpp"
#include "adapt/lab/lab_test_kit.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/status.hpp"
#include "adapt/lab/up.hpp"

namespace weft::adapt::lab {
namespace {

using namespace std::chrono_literals;
using testing::bring_up_and_open;
using testing::can_run;
using testing::DownAfter;
using testing::lab_name;
using testing::request;
using testing::Stream;
namespace fs = std::filesystem;

// What a lab of that name has left anywhere.
std::string leftovers(const std::string& name, const std::vector<LabProcess>& processes) {
  std::string out;
  for (const std::string& netns : list_netns(netns_prefix(name))) out += netns + " ";
  if (fs::exists(lab_directory(name))) out += lab_directory(name) + " ";
  for (const LabProcess& process : processes) {
    if (is_alive(process.id)) out += fmt::format("{} {} ", process.role, process.id.pid);
    if (fs::exists(fmt::format("/var/tmp/frr/{}.{}", process.role, process.id.pid)))
      out += fmt::format("/var/tmp/frr/{}.{} ", process.role, process.id.pid);
  }
  return out;
}

// Up, packets across, a drain and its reverse under traffic without loss, down, nothing left.
void live(Routing routing) {
  const std::string name = lab_name(routing == Routing::frr ? "f" : "s");
  const DownAfter down_after(name);
  Lab lab = bring_up_and_open(name, routing);
  const auto status = look_at(lab);
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
  CHECK(status->is_well());
  CHECK(status->routes == 6);  // one at each rtsw, two at each ctsw

  // A second lab of that name is refused, and does no harm to the first.
  const auto again = bring_up(lab.fabric, request(name, routing));
  REQUIRE(!again.has_value());
  CHECK(again.error().text().find("weft lab down --name " + name) != std::string::npos);

  for (const std::string_view target : {"ctsw:1", "rtsw:0--ctsw:0"}) {
    CAPTURE(target);
    Stream stream(lab, "host:0", "host:1");
    std::jthread sender([&] { stream.send_for(30s); });
    std::this_thread::sleep_for(200ms);
    const auto drained = drain(lab, target);
    CHECK_MESSAGE(drained.has_value(), (drained ? "" : drained.error().text()));
    CHECK(lab.drained.size() == 1);
    const auto back = undrain(lab, target);
    CHECK_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
    std::this_thread::sleep_for(200ms);
    stream.stop();
    sender.join();
    CHECK(stream.sent() > 100);
    CHECK(stream.received() == stream.sent());
  }
  const auto cut = drain(lab, "rtsw:0");
  REQUIRE(!cut.has_value());
  CHECK(cut.error().text().find("there would be no path to nic:0") != std::string::npos);

  const auto processes = read_journal(lab.journal());
  const auto down = take_down(name);
  REQUIRE_MESSAGE(down.has_value(), (down ? "" : down.error().text()));
  CHECK(down->namespaces == 7);
  CHECK(leftovers(name, processes) == "");
  const auto twice = take_down(name);
  REQUIRE(twice.has_value());
  CHECK(twice->nothing());
}

TEST_CASE("a lab with static routes lives and dies" * doctest::test_suite("needs namespaces")) {
  if (can_run(Routing::static_routes)) live(Routing::static_routes);
}

TEST_CASE("a lab with FRRouting lives and dies" * doctest::test_suite("needs frr")) {
  if (can_run(Routing::frr)) live(Routing::frr);
}

TEST_CASE("down cleans up after an `up` that was killed half way" *
          doctest::test_suite("needs frr")) {
  const Routing routing = Routing::frr;
  if (!can_run(routing)) return;
  const std::string name = lab_name("k");
  const DownAfter down_after(name);
  const pid_t pid = fork();
  if (pid == 0) {
    static_cast<void>(bring_up(testing::make_fabric(testing::two_by_two), request(name, routing)));
    _exit(0);
  }
  // Until the first daemons run.
  const std::string journal = lab_directory(name) + "/processes";
  for (int i = 0; i < 1'000 && read_journal(journal).size() < 3; ++i)
    std::this_thread::sleep_for(5ms);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  const auto processes = read_journal(journal);
  REQUIRE(processes.size() >= 3);
  CHECK(leftovers(name, processes) != "");
  const auto again = bring_up(testing::make_fabric(testing::two_by_two), request(name, routing));
  REQUIRE(!again.has_value());
  CHECK(again.error().text().find("a lab already exists") != std::string::npos);
  const auto down = take_down(name);
  REQUIRE_MESSAGE(down.has_value(), (down ? "" : down.error().text()));
  CHECK(leftovers(name, processes) == "");
}

TEST_CASE("an interface that was down gets its neighbour and routes back" *
          doctest::test_suite("needs namespaces")) {
  if (!can_run(Routing::static_routes)) return;
  const std::string name = lab_name("r");
  const DownAfter down_after(name);
  const Lab lab = bring_up_and_open(name, Routing::static_routes);
  const auto end = lab.plan.find_sender(lab.fabric, {"ctsw:0->rtsw:1", {}});
  REQUIRE(end.has_value());
  const auto set = [&](bool up) {
    return run_in_netns(lab.plan.node_of(*end).netns, [&]() -> Status {
      WEFT_TRY(Netlink netlink, Netlink::open("test"));
      WEFT_TRY(const auto indexes, netlink.indexes());
      const std::uint32_t index = indexes.at(lab.plan.end(*end).interface);
      WEFT_TRY_STATUS(up ? netlink.set_up(index) : netlink.set_down(index));
      return netlink.flush();
    });
  };
  REQUIRE(set(false).has_value());
  auto status = look_at(lab);
  REQUIRE(status.has_value());
  CHECK(status->cables_down == std::vector<LabCableId>{end->cable});
  CHECK(status->routes_missing > 0);
  REQUIRE(set(true).has_value());
  const Status restored = restore_interface(lab, *end);
  REQUIRE_MESSAGE(restored.has_value(), (restored ? "" : restored.error().text()));
  status = look_at(lab);
  REQUIRE(status.has_value());
  CHECK(status->is_well());
}

TEST_CASE("what is not there is said") {
  const auto lab = open_lab("nosuchlab");
  REQUIRE(!lab.has_value());
  CHECK(lab.error().text().find("lab \"nosuchlab\" does not exist") != std::string::npos);
  CHECK(!open_lab("../etc").has_value());
  CHECK(!take_down("../etc").has_value());
}

TEST_CASE("the doctor looks at everything and leaves nothing behind") {
  const Diagnosis found = diagnose();
  CHECK(found.features.size() >= 4);
  CHECK(!found.has("no such feature"));
  for (const Feature& feature : found.features) {
    CAPTURE(feature.name);
    CHECK((feature.works || !feature.detail.empty()));
  }
  CHECK(list_netns("weft-doctor").empty());
  if (!found.can_lab()) CHECK(!found.why_not().empty());
}

}  // namespace
}  // namespace weft::adapt::lab
