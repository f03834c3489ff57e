// FRRouting in a lab, reached as a switch would be: OpenSSH's client and server on loopback, vtysh.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

#include "adapt/devices/actuator.hpp"
#include "adapt/lab/drain_target.hpp"
#include "adapt/lab/forwarding.hpp"
#include "adapt/lab/lab_test_kit.hpp"
#include "adapt/lab/sessions.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/test_port.hpp"
#include "os/run_program.hpp"

namespace weft::adapt::devices {
namespace {

using namespace std::chrono_literals;
using port::ActionKind;
using port::Service;

// Ports by the names that kernels can have.
constexpr std::string_view two_by_two_named = R"(
nodes:
  - {role: ctsw, count: 2}
  - {role: rtsw, count: 2}
  - {role: host, count: 2}
  - {role: nic, count: 2, host: host:0..1}
  - {role: gpu, count: 2, host: host:0..1}
links:
  - {link: nic:0--rtsw:0, rate: 400 Gbps}
  - {link: nic:1--rtsw:1, rate: 400 Gbps}
  - {link: rtsw:0--ctsw:0, rate: 400 Gbps, interface_a: swp1, interface_b: swp8}
  - {link: rtsw:0--ctsw:1, rate: 400 Gbps, interface_a: swp2, interface_b: swp1}
  - {link: rtsw:1--ctsw:0, rate: 400 Gbps, interface_a: swp1, interface_b: swp9}
  - {link: rtsw:1--ctsw:1, rate: 400 Gbps, interface_a: swp2, interface_b: swp2}
)";
constexpr std::array<std::string_view, 4> switches{"ctsw:0", "ctsw:1", "rtsw:0", "rtsw:1"};

// One server on a port for each switch; the port says whose vtysh a command gets.
class Sshd {
 public:
  static constexpr const char* path = "/usr/sbin/sshd";

  explicit Sshd(const lab::Lab& lab) {
    for (const char* key : {"host", "id"})
      run({"/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_.file(key)});
    std::string config = fmt::format(
        "HostKey {0}/host\nPidFile none\nAuthorizedKeysFile {0}/id.pub\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nForceCommand {0}/login\n",
        folder_.path());
    std::string known;
    const std::string host_key = *read_file(folder_.file("host.pub"));
    for (const std::string_view name : switches) {
      const int port = free_port(SOCK_STREAM);
      ports_.push_back(port);
      config += fmt::format("ListenAddress 127.0.0.1:{}\n", port);
      known += fmt::format("[127.0.0.1]:{} {}", port, host_key);
      const std::string bin = folder_.file(std::to_string(port));
      std::filesystem::create_directory(bin);
      const auto node = lab::testing::node(lab.plan, lab.fabric, name);
      write_program(bin + "/vtysh", fmt::format("exec /usr/bin/vtysh --vty_socket {} \"$@\"",
                                                lab.node_directory(node)));
    }
    write_program(folder_.file("login"),
                  fmt::format("set -- $SSH_CONNECTION; PATH={}/$4:/usr/bin:/bin exec sh -c "
                              "\"$SSH_ORIGINAL_COMMAND\"",
                              folder_.path()));
    REQUIRE(write_file(folder_.file("known_hosts"), known));
    REQUIRE(write_file(folder_.file("sshd_config"), config));
    std::filesystem::create_directories("/run/sshd");
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string file = folder_.file("sshd_config"), log = folder_.file("log");
      ::execl(path, path, "-D", "-f", file.c_str(), "-E", log.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Sshd() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Sshd(const Sshd&) = delete;
  Sshd& operator=(const Sshd&) = delete;

  std::string csv() const {
    std::string out = "device,dialect,address,username,key,known_hosts\n";
    for (std::size_t i = 0; i < switches.size(); ++i)
      out += fmt::format("{},frr,127.0.0.1:{},root,{},{}\n", switches[i], ports_[i],
                         folder_.file("id"), folder_.file("known_hosts"));
    return out;
  }

 private:
  static void run(std::vector<std::string> argv) {
    const auto outcome = run_program({.argv = std::move(argv), .environment = {}});
    REQUIRE(outcome.has_value());
    REQUIRE_MESSAGE(outcome->exit_code == 0, outcome->errors);
  }
  static void write_program(const std::string& file, const std::string& line) {
    REQUIRE(write_file(file, "#!/bin/sh\n" + line + "\n"));
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  TestFolder folder_;
  std::vector<int> ports_;
  pid_t pid_ = 0;
};

bool can_run() {
  if (!lab::testing::can_run(lab::Routing::frr)) return false;
  for (const char* program : {Sshd::path, "/usr/bin/ssh", "/usr/bin/vtysh"})
    if (!std::filesystem::exists(program)) {
      skip_test(fmt::format("{} is not installed", program));
      return false;
    }
  return true;
}

struct Scene {
  Scene()
      : name(lab::testing::lab_name("ssh")),
        down_after(name),
        lab(lab::testing::bring_up_and_open(name, lab::Routing::frr, two_by_two_named)),
        sshd(lab) {}

  DeviceActuator actuator_of(const model::Fabric& fabric) const {
    auto devices = read_devices(sshd.csv(), "switches.csv");
    REQUIRE_MESSAGE(devices.has_value(), (devices ? "" : devices.error().text()));
    auto out = DeviceActuator::create(
        fabric, {.devices = *std::move(devices), .dry_run = false, .settle = 1500ms});
    REQUIRE(out.has_value());
    return *std::move(out);
  }
  // By the routes of all kernels, which nobody asked of the daemons.
  bool carries(std::string_view entity) const {
    const auto target = lab::find_drain_target(lab, entity);
    REQUIRE(target.has_value());
    const auto now = lab::Forwarding::read(lab.plan);
    REQUIRE(now.has_value());
    return lab::crosses(*now, *target);
  }
  std::size_t sessions_up(std::string_view device) const {
    const auto found =
        lab::read_sessions(lab, lab::testing::node(lab.plan, lab.fabric, device), 2s);
    REQUIRE(found.has_value());
    return static_cast<std::size_t>(std::ranges::count_if(
        *found, [](const auto& one) { return one.second == lab::Session::established; }));
  }
  template <class Condition>
  void await(Condition condition) const {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(100ms);
    CHECK(condition());
  }

  std::string name;
  lab::testing::DownAfter down_after;
  lab::Lab lab;
  Sshd sshd;
};

void act(DeviceActuator& actuator, ActionKind kind, const std::string& entity) {
  const Status done = actuator.act({.id = "a", .kind = kind, .entity = entity, .case_id = "c"});
  CHECK_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
}

TEST_SUITE("needs sshd") {
  TEST_CASE("a switch with FRRouting is drained over ssh without loss, and returned") {
    if (!can_run()) return;
    const Scene scene;
    DeviceActuator actuator = scene.actuator_of(scene.lab.fabric);
    const std::string spine = "ctsw:0";
    scene.await([&] { return actuator.state(spine) == Service::in_service; });
    CHECK(scene.carries(spine));

    lab::testing::Stream stream(scene.lab, "host:0", "host:1");
    std::jthread sending([&] { stream.send_for(60s); });
    act(actuator, ActionKind::drain, spine);
    stream.stop();
    sending.join();
    CHECK(stream.sent() > 500);
    CHECK(stream.received() == stream.sent());
    CHECK(actuator.state(spine) == Service::drained);
    CHECK_FALSE(scene.carries(spine));
    CHECK(scene.sessions_up("rtsw:0") == 1);
    CHECK(scene.sessions_up(spine) == 0);

    act(actuator, ActionKind::drain, spine);  // again: nothing happens
    CHECK(actuator.state(spine) == Service::drained);
    act(actuator, ActionKind::undrain, spine);
    CHECK(actuator.state(spine) == Service::in_service);
    scene.await([&] { return scene.carries(spine) && scene.sessions_up("rtsw:0") == 2; });
  }

  TEST_CASE("a cable between switches with FRRouting is shut at both ends, and returned") {
    if (!can_run()) return;
    const Scene scene;
    DeviceActuator actuator = scene.actuator_of(scene.lab.fabric);
    const std::string cable = "rtsw:0--ctsw:0";
    scene.await([&] { return actuator.state(cable) == Service::in_service; });
    CHECK(scene.carries(cable));
    act(actuator, ActionKind::drain, cable);
    CHECK(actuator.state(cable) == Service::drained);
    scene.await([&] { return !scene.carries(cable) && scene.sessions_up("rtsw:0") == 1; });
    act(actuator, ActionKind::undrain, cable);
    CHECK(actuator.state(cable) == Service::in_service);
    scene.await([&] { return scene.carries(cable) && scene.sessions_up("rtsw:0") == 2; });

    // A fabric that has the two ports of the spine swapped, and one with a port that is not there.
    const auto refusal = [&](std::string_view rack_0, std::string_view rack_1) {
      std::string yaml(two_by_two_named);
      yaml.replace(yaml.find("swp8"), 4, rack_0);
      yaml.replace(yaml.rfind("swp9"), 4, rack_1);
      const model::Fabric wrong = model::testing::make_fabric(yaml);
      DeviceActuator misled = scene.actuator_of(wrong);
      const Status done =
          misled.act({.id = "a", .kind = ActionKind::drain, .entity = cable, .case_id = "c"});
      return done ? std::string("done") : done.error().text();
    };
    CHECK(refusal("swp9", "swp8").contains("the cabling is not as the fabric has it"));
    CHECK(refusal("swp7", "swp9").contains("does not say whether swp7 is shut"));
    CHECK(actuator.state(cable) == Service::in_service);
    scene.await([&] { return scene.carries(cable) && scene.sessions_up("rtsw:0") == 2; });
  }
}

}  // namespace
}  // namespace weft::adapt::devices
