#include "adapt/gnmi/neighbours.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <gnmi.pb.h>

#include <string>
#include <vector>

#include "adapt/gnmi/decoder.hpp"
#include "adapt/gnmi/gnmi_test_target.hpp"
#include "base/rng.hpp"

namespace weft::adapt::gnmi {
namespace {

constexpr Timestamp heard_at{1'800'000'000'000'000'000};

struct Heard {
  NeighbourReader reader;
  MisreadTable misread;
  Decoder decoder{"leaf1", misread,
                  [this](std::string_view device, const Leaf& leaf) { reader.take(device, leaf); }};

  void take(const ::gnmi::SubscribeResponse& message) {
    std::vector<port::Sample> samples;
    decoder.take(message, heard_at, samples);
    CHECK(samples.empty());
  }
  void text(const std::string& path, const std::string& value) {
    ::gnmi::SubscribeResponse out;
    auto& update = *out.mutable_update()->add_update();
    set_path(*update.mutable_path(), path);
    update.mutable_val()->set_string_val(value);
    take(out);
  }
  void json(const std::string& path, const std::string& value) { take(json_message(path, value)); }
  std::string seen() const {
    std::string out;
    for (const model::Neighbours& one : reader.finish()) {
      out += fmt::format("{} ({}): ", one.device, one.system_name);
      for (const model::LldpNeighbour& row : one.lldp)
        out += fmt::format("{} {} {}; ", row.port, row.device, row.device_port);
      for (const model::PortAddress& row : one.addresses)
        out += fmt::format("{} {}; ", row.port, row.address.text());
      for (const model::BgpSession& row : one.sessions)
        out += fmt::format("{}{}; ", row.peer.text(), row.is_established ? " up" : "");
    }
    return out;
  }
};

TEST_CASE("LLDP: leaf by leaf, and as the subtree of one neighbour") {
  Heard d;
  d.text("lldp/state/system-name", "leaf1.example.net");
  const std::string at =
      "lldp/interfaces/interface[name=Ethernet1]/neighbors/neighbor[id=42]/state/";
  d.text(at + "system-name", "spine1");
  d.text(at + "port-id", "Ethernet7");
  d.text(at + "port-id-type", "INTERFACE_NAME");
  d.text(at + "port-description", "to leaf1");
  d.json("lldp/interfaces/interface[name=Ethernet9]/neighbors",
         R"({"openconfig-lldp:neighbor": [{"id": "1", "state": {"id": "1", "system-name": "gpu1",
             "chassis-id": "00:1b:21:ff:00:0a", "port-id": "00:1b:21:00:00:02", "ttl": 120,
             "port-id-type": "MAC_ADDRESS", "port-description": "eth0"}}]})");
  d.json("lldp/interfaces/interface[name=Ethernet3]/neighbors/neighbor[id=1]/state",
         R"({"chassis-id": "00:1b:21:ff:00:0b", "port-id": "512", "port-id-type": "LOCAL"})");
  d.json("lldp/interfaces/interface[name=Ethernet4]/neighbors/neighbor[id=1]/state",
         R"({"port-id": "of nobody"})");
  CHECK(d.seen() ==
        "leaf1 (leaf1.example.net): Ethernet1 spine1 Ethernet7; Ethernet3 00:1b:21:ff:00:0b 512; "
        "Ethernet9 gpu1 eth0; ");
}

TEST_CASE("BGP: states of sessions, and addresses of interfaces in both versions") {
  Heard d;
  const std::string peers =
      "network-instances/network-instance[name=default]/protocols/protocol[identifier=BGP]"
      "[name=BGP]/bgp/neighbors/";
  d.text(peers + "neighbor[neighbor-address=10.1.0.0]/state/session-state", "ESTABLISHED");
  d.json(peers + "neighbor[neighbor-address=fd00::1]/state",
         R"({"session-state": "openconfig-bgp-types:ACTIVE", "neighbor-address": "fd00::1"})");
  d.text(peers + "neighbor[neighbor-address=Ethernet4]/state/session-state", "ESTABLISHED");
  const std::string port =
      "interfaces/interface[name=Ethernet1]/subinterfaces/subinterface[index=0]";
  d.take(number_message(port + "/ipv4/addresses/address[ip=10.1.0.1]/state/prefix-length", 31));
  d.json(port + "/ipv6/addresses",
         R"({"address": [{"ip": "fd00::2", "state": {"ip": "fd00::2", "prefix-length": 64}},
                         {"ip": "fe80::2", "state": {"ip": "fe80::2", "prefix-length": 64}},
                         {"ip": "fd00::3", "state": {"ip": "fd00::3", "prefix-length": 129}}]})");
  CHECK(d.seen() ==
        "leaf1 (): Ethernet1 10.1.0.1/31; Ethernet1 fd00::2/64; 10.1.0.0 up; fd00::1; ");
}

TEST_CASE("rows beyond the bound are counted") {
  Heard d;
  for (std::size_t i = 0; i < NeighbourReader::rows_max + 2; ++i)
    d.text(
        fmt::format("network-instances/network-instance[name=d]/protocols/protocol"
                    "[identifier=BGP][name=b]/bgp/neighbors/neighbor[neighbor-address=10.{}.{}.{}]"
                    "/state/session-state",
                    i >> 16, i >> 8 & 255, i & 255),
        "ESTABLISHED");
  CHECK(d.reader.finish().front().sessions.size() == NeighbourReader::rows_max);
  CHECK(d.reader.left_out() == 2);
}

TEST_CASE("whatever a target says is taken, or left out") {
  Rng rng(11);
  const std::vector<std::string> elements{
      "lldp",         "interfaces", "interface[name=e1]",
      "neighbors",    "state",      "neighbor[id=1]",
      "system-name",  "port-id",    "neighbor[neighbor-address=1.2.3.4]",
      "prefix-length"};
  const std::vector<std::string> values{
      "1",      "\"x\"",          "null", "{\"neighbor\": [{\"id\": 7}]}", "[1, {\"ip\": {}}]",
      "-1e300", "\"10.0.0.1/99\""};
  for (int round = 0; round < 2'000; ++round) {
    Heard d;
    std::string path;
    for (std::uint64_t n = 1 + rng.below(8); n > 0; --n)
      path += (path.empty() ? "" : "/") + elements[rng.below(elements.size())];
    d.json(path, values[rng.below(values.size())]);
    for (const model::Neighbours& one : d.reader.finish())
      for (const model::LldpNeighbour& row : one.lldp) CHECK_FALSE(row.device.empty());
  }
}

}  // namespace
}  // namespace weft::adapt::gnmi
