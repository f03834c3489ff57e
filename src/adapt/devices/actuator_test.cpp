#include "adapt/devices/actuator.hpp"

#include <algorithm>
#include <map>

#include "adapt/devices/test_recorded.hpp"

namespace weft::adapt::devices {
namespace {

using namespace std::chrono_literals;
using port::ActionKind;
using port::Service;
using testing::Recorded;

const std::string cable = "rtsw:0--ctsw:0";

port::Action action(std::string entity, ActionKind kind = ActionKind::drain) {
  return {.id = "a1", .kind = kind, .entity = std::move(entity), .case_id = "c1"};
}

DeviceActuator made(Result<DeviceActuator> actuator) {
  REQUIRE_MESSAGE(actuator.has_value(), (actuator ? "" : actuator.error().text()));
  return *std::move(actuator);
}

void check_done(const Status& status) {
  CHECK_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
}

TEST_CASE("recorded switches go out of service and come back") {
  for (const std::string dialect : {"sonic", "eos", "nxos", "frr"}) {
    CAPTURE(dialect);
    const Recorded recorded(dialect);
    const model::Fabric fabric = recorded.fabric();
    DeviceActuator actuator = made(DeviceActuator::create(fabric, recorded.settings()));
    CHECK(actuator.state("ctsw:0") == Service::in_service);
    check_done(actuator.act(action("ctsw:0")));
    CHECK(actuator.state("ctsw:0") == Service::drained);
    check_done(actuator.act(action("ctsw:0")));  // it only looks
    check_done(actuator.act(action("ctsw:0", ActionKind::undrain)));
    CHECK(actuator.state("ctsw:0") == Service::in_service);

    CHECK(actuator.state(cable) == Service::in_service);
    check_done(actuator.act(action(cable)));
    CHECK(actuator.state(cable) == Service::drained);
    check_done(actuator.act(action(cable, ActionKind::undrain)));
    CHECK(actuator.state(cable) == Service::in_service);

    const Status refused = actuator.act(action("ctsw:0"));
    REQUIRE(!refused);
    CHECK(refused.error().code == Errc::unsupported);
    CHECK_MESSAGE(refused.error().text().contains(recorded.text("refusal")),
                  refused.error().text());
    CHECK(recorded.is_over());
  }
}

TEST_CASE("ssh asks nothing, trusts no unknown host and takes names for no options") {
  const Recorded recorded("sonic");
  const model::Fabric fabric = recorded.fabric();
  Settings settings = recorded.settings();
  settings.devices[0].address = "[2001:db8::7]:2222";
  settings.devices[0].known_hosts = "/etc/weft/hosts";
  settings.devices[0].key = "/etc/weft/id";
  const std::vector<std::string> got = ssh_arguments(settings.devices[0], settings);
  const auto has = [&](std::vector<std::string> words) {
    return !std::ranges::search(got, words).empty();
  };
  for (const char* option : {"BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no",
                             "UserKnownHostsFile=/etc/weft/hosts", "IdentitiesOnly=yes"})
    CHECK(has({"-o", option}));
  CHECK(has({"-p", "2222"}));
  CHECK(has({"-l", "weft", "--", "2001:db8::7"}));
  CHECK(got.back() == "2001:db8::7");
  settings.devices[0].address = "10.0.0.1";
  CHECK(std::ranges::count(ssh_arguments(settings.devices[0], settings), "22") == 1);
}

// Two SONiC switches in memory, and the cables between them.
struct Net {
  std::map<std::string, std::string> cabling{{"rtsw:0 Ethernet120", "ctsw:0 Ethernet16"},
                                             {"ctsw:0 Ethernet16", "rtsw:0 Ethernet120"}};
  std::map<std::string, bool> is_shut;
  std::string dead, refusing;  // a device
  bool refuses_all = false;    // also to open a port again
  std::vector<std::string> sent;

  bool has_signal(const std::string& port) {
    const auto other = cabling.find(port);
    return other != cabling.end() && !is_shut[port] && !is_shut[other->second];
  }
  Result<std::string> run(const std::string& device, const std::string& command) {
    if (device == dead) return fail(Errc::io, {}, device + " is dead");
    const std::vector<std::string_view> words = split(command, ' ');
    if (words[0] == "sonic-db-cli") {
      const std::string port = device + " " + std::string(words[3].substr(11));
      if (!cabling.contains(port)) return "\n";
      if (words[4] == "admin_status") return is_shut[port] ? "down\n" : "up\n";
      return has_signal(port) ? "up\n" : "down\n";
    }
    const bool shuts = words[4] == "shutdown";
    if (device == refusing && (shuts || refuses_all))
      return fail(Errc::unsupported, {}, device + " refuses");
    sent.push_back(device + ": " + command);
    is_shut[device + " " + std::string(words[5])] = shuts;
    return "";
  }
  OpenSession opener() {
    struct Fake : Session {
      Fake(Net& its_net, std::string its_device) : net(its_net), device(std::move(its_device)) {}
      Result<std::vector<std::string>> run(const Commands& commands) override {
        std::vector<std::string> out;
        for (const std::string& command : commands) {
          WEFT_TRY(std::string answer, net.run(device, command));
          out.push_back(std::move(answer));
        }
        return out;
      }
      Net& net;
      std::string device;
    };
    return [this](const Device& device, const Settings&) {
      return std::make_unique<Fake>(*this, device.name);
    };
  }
};

struct NetBench {
  Recorded recorded{"sonic"};
  model::Fabric fabric = recorded.fabric();
  Net net;
  Settings settings = recorded.settings();
  DeviceActuator actuator() { return made(DeviceActuator::create(fabric, settings, net.opener())); }
};

TEST_CASE("an end that refuses leaves the cable as it was") {
  NetBench bench;
  bench.net.refusing = "ctsw:0";
  DeviceActuator actuator = bench.actuator();
  const Status refused = actuator.act(action(cable));
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(actuator.state(cable) == Service::in_service);
  CHECK(bench.net.sent ==
        std::vector<std::string>{"rtsw:0: sudo -n config interface shutdown Ethernet120",
                                 "rtsw:0: sudo -n config interface startup Ethernet120"});
}

TEST_CASE("a switch that refuses the second step gets back the first") {
  const Recorded recorded("frr");
  const model::Fabric fabric = recorded.fabric();
  std::vector<std::string> sent;
  std::string refused = "'bgp shutdown'";
  struct Fake : Session {
    Fake(std::vector<std::string>& its_sent, const std::string& its_refused)
        : sent(its_sent), refused(its_refused) {}
    Result<std::vector<std::string>> run(const Commands& commands) override {
      if (commands.size() == 2)  // it is asked
        return std::vector<std::string>{
            R"({"ipv4Unicast": {"peers": {"10.0.0.1": {"state": "Established"}}}})", "end"};
      if (commands[0].ends_with(refused)) return fail(Errc::unsupported, {}, "it refuses");
      sent.push_back(commands[0].substr(commands[0].rfind(" -c ") + 4));
      return std::vector<std::string>{""};
    }
    std::vector<std::string>& sent;
    const std::string& refused;
  };
  DeviceActuator actuator =
      made(DeviceActuator::create(fabric, recorded.settings(), [&](const Device&, const Settings&) {
        return std::make_unique<Fake>(sent, refused);
      }));
  CHECK(actuator.act(action("ctsw:0")).error().code == Errc::unsupported);
  CHECK(sent == std::vector<std::string>{"'bgp graceful-shutdown'", "'no bgp shutdown'",
                                         "'no bgp graceful-shutdown'"});
  sent.clear();
  refused = "bgp shutdown'";  // both ways
  CHECK(actuator.act(action("ctsw:0")).error().code == Errc::io);
  refused = "bgp graceful-shutdown'";
  sent.clear();
  CHECK(actuator.act(action("ctsw:0")).error().code == Errc::unsupported);
  CHECK(sent.empty());
}

TEST_CASE("what cannot be taken back is said, and is no clean refusal") {
  NetBench bench;
  bench.net.cabling["ctsw:0 Ethernet16"] = "rtsw:1 Ethernet0";  // it keeps its signal
  bench.net.refusing = "rtsw:0";
  bench.net.refuses_all = true;
  bench.net.is_shut["rtsw:0 Ethernet120"] = false;
  DeviceActuator actuator = bench.actuator();
  CHECK(actuator.act(action(cable)).error().code == Errc::unsupported);  // nothing was done
  bench.net.refusing.clear();
  struct Once : Session {  // shuts, and refuses from then on
    explicit Once(std::unique_ptr<Session> its_inner, Net& its_net)
        : inner(std::move(its_inner)), net(its_net) {}
    Result<std::vector<std::string>> run(const Commands& commands) override {
      auto out = inner->run(commands);
      if (commands[0].contains("shutdown")) net.refusing = "rtsw:0";
      return out;
    }
    std::unique_ptr<Session> inner;
    Net& net;
  };
  const OpenSession plain = bench.net.opener();
  DeviceActuator stuck = made(DeviceActuator::create(
      bench.fabric, bench.settings, [&](const Device& device, const Settings& settings) {
        return std::make_unique<Once>(plain(device, settings), bench.net);
      }));
  const Status failed = stuck.act(action(cable));
  REQUIRE(!failed);
  CHECK(failed.error().code == Errc::io);  // the state decides
  CHECK(failed.error().text().contains("could not be set back"));
}

TEST_CASE("a cable that is not where the fabric has it stays in service") {
  NetBench bench;
  bench.net.cabling["ctsw:0 Ethernet16"] = "rtsw:1 Ethernet0";
  DeviceActuator actuator = bench.actuator();
  const Status refused = actuator.act(action(cable));
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().text().contains("the cabling is not as the fabric has it"));
  CHECK_FALSE(bench.net.is_shut["rtsw:0 Ethernet120"]);
  CHECK_FALSE(bench.net.is_shut["ctsw:0 Ethernet16"]);
  // Shut by hand at one end only: the other end still carries somebody's packets.
  bench.net.is_shut["rtsw:0 Ethernet120"] = true;
  CHECK(actuator.state(cable) == Service::draining);
}

TEST_CASE(
    "a cable of a dead switch is drained at its other end, and not returned before it answers") {
  NetBench bench;
  bench.net.dead = "ctsw:0";
  DeviceActuator actuator = bench.actuator();
  CHECK(actuator.state(cable).error().code == Errc::io);
  check_done(actuator.act(action(cable)));
  CHECK(actuator.state(cable) == Service::drained);
  CHECK(actuator.act(action(cable, ActionKind::undrain)).error().code == Errc::io);
  CHECK(bench.net.is_shut["rtsw:0 Ethernet120"]);
  bench.net.dead.clear();
  check_done(actuator.act(action(cable, ActionKind::undrain)));
  CHECK(actuator.state(cable) == Service::in_service);
  bench.net.dead = "ctsw:0";
  bench.net.cabling.erase("rtsw:0 Ethernet120");  // the port has another name there
  CHECK(actuator.act(action(cable)).error().code == Errc::unsupported);
}

TEST_CASE("a dry run reads, and sends nothing") {
  NetBench bench;
  bench.settings.dry_run = true;
  DeviceActuator actuator = bench.actuator();
  CHECK(actuator.state(cable) == Service::in_service);
  const Status dry = actuator.act(action(cable));
  REQUIRE(!dry);
  CHECK(dry.error().code == Errc::infeasible);
  CHECK(dry.error().what ==
        "dry run, nothing was sent: rtsw:0 (sonic, rtsw0): sudo -n config interface shutdown "
        "Ethernet120 | ctsw:0 (sonic, ctsw0): sudo -n config interface shutdown Ethernet16");
  CHECK(bench.net.sent.empty());
}

TEST_CASE("parts that cannot be drained are refused before anything is sent") {
  NetBench bench;
  DeviceActuator actuator = bench.actuator();
  CHECK(actuator.act(action("rtsw:9")).error().code == Errc::unknown);
  CHECK(actuator.act(action("rtsw:0/0")).error().code == Errc::unsupported);
  CHECK(actuator.check(cable).error().code == Errc::unsupported);
  bench.settings.devices.pop_back();  // rtsw:0
  CHECK(bench.actuator().act(action(cable)).error().text().contains("not among the switches"));
  bench.settings.devices[0].dialect = *find_dialect({"openconfig", {}});
  CHECK(bench.actuator().act(action("ctsw:0")).error().code == Errc::unsupported);
  bench.settings.devices[0].name = "spine";
  bench.settings.devices[0].where = {"switches.csv", 2, 1};
  CHECK(DeviceActuator::create(bench.fabric, bench.settings)
            .error()
            .text()
            .starts_with("switches.csv:2:1: "));
  CHECK(bench.net.sent.empty());
}

TEST_CASE("names that could mean something to a shell are never sent") {
  const Commands shut{"sudo -n config interface shutdown {}"};
  CHECK(of_port(shut, "Ethernet1/1:0").value()[0].ends_with(" Ethernet1/1:0"));
  for (const std::string bad :
       {"", "-x", "1", "e0; reboot", "e0'", "e0 e1", "e\n0", "$(x)", "e`x`", "e]"})
    CHECK(of_port(shut, bad).error().code == Errc::value);
  CHECK(of_port(shut, "e" + std::string(64, '1')).error().code == Errc::value);
}

}  // namespace
}  // namespace weft::adapt::devices
