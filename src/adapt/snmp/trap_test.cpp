// Real traps, sent by net-snmp's snmptrap over loopback.
#include "adapt/snmp/trap.hpp"

#include <doctest/doctest.h>

#include "adapt/snmp/test_kit.hpp"
#include "adapt/snmp/trap_receiver.hpp"
#include "base/config.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"
#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::snmp {
namespace {

using test::integer;
using test::text;
using test::WallClock;

struct Bed {
  model::Fabric fabric;
  observe::telemetry::Inventory inventory;
  TrapReader reader;

  static model::Fabric build() {
    return model::testing::make_fabric(
        "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  }
  Bed()
      : fabric(build()),
        inventory(fabric),
        reader(inventory, [](std::string_view, std::uint32_t index) {
          return index == 9 ? std::string("Ethernet1/9") : std::string();
        }) {
    const Status added = inventory.add_csv(
        "address,device,interface\n127.0.0.1,rtsw:0,\n10.9.0.1,ctsw:0,Ethernet1/0\n", "i.csv");
    REQUIRE(added.has_value());
  }
  std::string said() {
    const model::RecordSet set = reader.take_records();
    std::string out;
    for (const model::Record& row : set.rows) {
      out += (out.empty() ? "" : "; ") + std::string(to_text(row.kind)) + " " +
             name(fabric, row.entity);
      for (const auto& [key, value] : set.attrs[row.attrs])
        out.append(" ").append(key).append("=").append(value);
    }
    return out;
  }
  std::string said(const std::string& from, std::string_view kind,
                   const std::vector<std::pair<std::string, Value>>& values) {
    Trap trap{{}, from, *parse_oid(kind), {}};
    for (const auto& [oid, value] : values) trap.values.emplace_back(*parse_oid(oid), value);
    reader.take(trap);
    return said();
  }
};

TEST_CASE("traps become records") {
  Bed bed;
  const std::string down = "1.3.6.1.6.3.1.1.5.3", up = "1.3.6.1.6.3.1.1.5.4";
  const std::string index = "1.3.6.1.2.1.2.2.1.1.9", admin = "1.3.6.1.2.1.2.2.1.7.9";
  CHECK(bed.said("127.0.0.1", down, {{index, integer(9)}, {admin, integer(1)}}) ==
        "link_down rtsw:0/9");
  CHECK(bed.said("127.0.0.1", down, {{index, integer(9)}, {admin, integer(2)}}) ==
        "link_down rtsw:0/9 reason=policy");
  CHECK(bed.said("rtsw-0", up, {{"1.3.6.1.2.1.31.1.1.1.1.4", text("Ethernet1/8")}}) ==
        "link_up rtsw:0/8");
  CHECK(bed.said("rtsw-0", down, {{"1.3.6.1.2.1.2.2.1.1.77", integer(77)}}) ==
        "link_down  entity=rtsw:0/ifIndex 77");
  CHECK(bed.said("host:1", down, {{"1.3.6.1.2.1.2.2.1.2.4", text("mlx5_0")}}) ==
        "nic_down " + bed.fabric.name(bed.inventory.nic(bed.inventory.device("host:1"), "eth0")));
  CHECK(bed.said("127.0.0.1", "1.3.6.1.6.3.1.1.5.1", {}) == "device_boot rtsw:0");
  CHECK(bed.said("host:0", "1.3.6.1.6.3.1.1.5.1", {}) == "host_boot host:0");
  CHECK(bed.said("127.0.0.1", "1.3.6.1.2.1.15.0.2",
                 {{"1.3.6.1.2.1.15.3.1.2.10.9.0.1", integer(1)}}) == "bgp_down rtsw:0/8");
  CHECK(bed.said("127.0.0.1", "1.3.6.1.2.1.15.7.1",
                 {{"1.3.6.1.2.1.15.3.1.2.10.9.0.9", integer(6)}}) ==
        "bgp_up  entity=rtsw:0/10.9.0.9");
  CHECK(bed.said("127.0.0.1", "1.3.6.1.4.1.9.9.91.2.0.1", {{"1.3.6.1.4.1.9", integer(3)}}) ==
        "info rtsw:0 trap=1.3.6.1.4.1.9.9.91.2.0.1 message=1.3.6.1.4.1.9=3");
  CHECK(bed.said("192.0.2.1", down, {}) ==
        "link_down  entity=192.0.2.1 trap=1.3.6.1.6.3.1.1.5.3 message=");
  CHECK(bed.reader.counts().unknown_kinds == 1);
  CHECK(bed.reader.counts().unknown_ports == 2);
  CHECK(bed.reader.counts().unknown_devices == 1);
}

// snmptrap with these words.
std::vector<std::string> sending(const std::vector<std::string>& words, std::uint16_t port,
                                 const TestFolder& folder, std::string_view index) {
  std::vector<std::string> command{"/usr/bin/snmptrap", "-M", folder.path(), "-r", "1", "-t", "3"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(),
                 {"udp:127.0.0.1:" + std::to_string(port), "1234", "1.3.6.1.6.3.1.1.5.3",
                  "1.3.6.1.2.1.2.2.1.1." + std::string(index), "i", std::string(index)});
  return command;
}
// A receiver that one community and one user, of a known engine and of any, may talk to.
struct Station {
  std::uint16_t port = free_port(SOCK_DGRAM);
  std::string engine = "80001f88805a4b3c2d1e0f0102";
  WallClock clock;
  TestFolder folder;
  TrapReceiver receiver = open();

  TrapReceiver open() {
    const Credentials weft{.version = Credentials::Version::v3,
                           .user = "weft",
                           .auth = Credentials::Auth::sha,
                           .auth_password = "a long secret",
                           .priv = Credentials::Priv::aes,
                           .priv_password = "another secret"};
    auto opened = TrapReceiver::open({.listen = {"127.0.0.1", port},
                                      .communities = {"lab"},
                                      .users = {{weft, engine}, {weft, ""}}},
                                     clock);
    REQUIRE_MESSAGE(opened.has_value(), (opened ? "" : opened.error().text()));
    return *std::move(opened);
  }
  int send(const std::vector<std::string>& words, std::string_view index = "9") {
    return test::Child(sending(words, port, folder, index), folder.path()).wait();
  }
  std::vector<Trap> hear(std::size_t wanted) {
    std::vector<Trap> out;
    const port::Instant end = clock.now() + (wanted > 0 ? 10 : 1) * ns_per_s / 2;
    while (clock.now() < end && (wanted == 0 || out.size() < wanted)) {
      receiver.wait(clock.now() + 20'000'000);
      receiver.step();
      while (auto trap = receiver.take()) out.push_back(*std::move(trap));
    }
    return out;
  }
};

// The user's own words, and more.
std::vector<std::string> with(const std::vector<std::string>& more) {
  std::vector<std::string> out{"-v3",           "-u", "weft", "-a", "SHA",           "-A",
                               "a long secret", "-x", "AES",  "-X", "another secret"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

bool has_snmptrap() {
  const bool out = test::has_program("/usr/bin/snmptrap");
  if (!out) skip_test("there is no /usr/bin/snmptrap");
  return out;
}

TEST_CASE("which of the agents that are polled a trap came from") {
  const Bed bed;
  const std::vector<Target> targets{{.device = "rtsw-0", .agent = {"10.0.0.1"}},
                                    {.device = "spine", .agent = {"10.9.0.1"}},
                                    {.device = "elsewhere", .agent = {"192.0.2.7"}}};
  const TrapTargets known(bed.inventory, targets);
  const auto of = [&](const char* from) { return known.of(Trap{{}, from, {}, {}}); };
  CHECK(of("127.0.0.1") == "rtsw-0");  // another address of the same device
  CHECK(of("10.9.0.1") == "spine");
  CHECK(known.of("ctsw:0") == "spine");
  CHECK(of("192.0.2.7") == "elsewhere");
  CHECK(of("192.0.2.8").empty());
  for (const auto& [kind, changes] :
       {std::pair{"1.3.6.1.6.3.1.1.5.3", true}, std::pair{"1.3.6.1.6.3.1.1.5.4", true},
        std::pair{"1.3.6.1.6.3.1.1.5.1", true}, std::pair{"1.3.6.1.2.1.15.0.2", true},
        std::pair{"1.3.6.1.2.1.15.7.1", true}, std::pair{"1.3.6.1.6.3.1.1.5.5", false},
        std::pair{"1.3.6.1.2.1.99.0.1", false}})
    CHECK(changes_state(Trap{{}, "", *parse_oid(kind), {}}) == changes);
}

TEST_CASE("real traps of a community: who is known is heard once, others are counted" *
          doctest::test_suite("needs snmptrap")) {
  if (!has_snmptrap()) return;
  Station at;
  CHECK(at.send({"-v2c", "-c", "lab"}) == 0);
  auto traps = at.hear(1);
  REQUIRE(traps.size() == 1);
  CHECK(traps[0].from == "127.0.0.1");
  CHECK(to_text(traps[0].kind) == "1.3.6.1.6.3.1.1.5.3");
  REQUIRE(traps[0].values.size() == 1);
  CHECK(number(traps[0].values[0].second) == 9.0);
  Bed bed;
  bed.reader.take(traps[0]);
  CHECK(bed.said() == "link_down rtsw:0/9");

  CHECK(at.send({"-v2c", "-c", "lab"}) == 0);  // the same once more
  CHECK(at.hear(0).empty());
  CHECK(at.receiver.counts().duplicates == 1);
  CHECK(at.send({"-v2c", "-c", "public"}) == 0);
  CHECK(at.hear(0).empty());
  CHECK(at.receiver.counts().refused == 1);
}

TEST_CASE("real traps of a user, and informs" * doctest::test_suite("needs snmptrap")) {
  if (!has_snmptrap()) return;
  Station at;
  CHECK(at.send(with({"-l", "authPriv", "-e", "0x" + at.engine}), "10") == 0);
  CHECK(at.hear(1).size() == 1);
  // Known by name, but not as well kept as it can: anybody could write that.
  CHECK(at.send(with({"-l", "noAuthNoPriv", "-e", "0x" + at.engine}), "11") == 0);
  CHECK(at.hear(0).empty());
  CHECK(at.receiver.counts().refused == 1);
  std::vector<std::string> wrong = with({"-l", "authPriv", "-e", "0x" + at.engine});
  wrong[6] = "not the secret";
  CHECK(at.send(wrong, "12") == 0);
  CHECK(at.hear(0).empty());
  CHECK(at.receiver.counts().unauthentic > 0);
  CHECK(at.receiver.counts().heard == 1);

  // Informs end well for their sender only when they are acknowledged.
  for (const auto& words :
       {std::vector<std::string>{"-v2c", "-c", "lab", "-Ci"}, with({"-l", "authPriv", "-Ci"})}) {
    test::Child inform(sending(words, at.port, at.folder, words[0] == "-v3" ? "13" : "14"),
                       at.folder.path());
    CHECK(at.hear(1).size() == 1);
    CHECK(inform.wait() == 0);
  }
  CHECK(at.receiver.counts().informs == 2);
}

TEST_CASE("what cannot be opened is said") {
  WallClock clock;
  const std::uint16_t port = free_port(SOCK_DGRAM);
  CHECK_FALSE(TrapReceiver::open({.listen = {"127.0.0.1", port}}, clock).has_value());
  const auto first =
      TrapReceiver::open({.listen = {"127.0.0.1", port}, .communities = {"lab"}}, clock);
  REQUIRE(first.has_value());
  const auto second =
      TrapReceiver::open({.listen = {"127.0.0.1", port}, .communities = {"lab"}}, clock);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == Errc::io);
  CHECK_FALSE(TrapReceiver::open({.listen = {"localhost", port}, .communities = {"lab"}}, clock)
                  .has_value());
}

}  // namespace
}  // namespace weft::adapt::snmp
