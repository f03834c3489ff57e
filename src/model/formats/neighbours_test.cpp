#include "model/formats/neighbours.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace weft::model {
namespace {

IpPrefix at(std::string_view address, unsigned length) {
  IpPrefix out = parse_ip_prefix({address, {}}).value();
  out.length = length;
  return out;
}
BgpSession session(std::string_view peer, bool is_established = true) {
  return {parse_ip_prefix({peer, {}}).value(), is_established};
}
std::string told(std::span<const Neighbours> devices) {
  const NeighbourCables found = cables_of(devices);
  std::string out = std::to_string(found.unplaced);
  for (const SeenCable& cable : found.cables)
    out += fmt::format("; {}/{} {}/{}", cable.a.device, cable.a.port, cable.b.device, cable.b.port);
  return out;
}

TEST_CASE("a session runs over the subnet of an interface, to the port that has the address") {
  Neighbours leaf{.device = "leaf1", .system_name = {}, .lldp = {}};
  leaf.addresses = {{"lo", at("10.0.0.1", 32)},
                    {"Ethernet1", at("10.1.0.1", 31)},
                    {"Ethernet2", at("fd00:1::2", 64)},
                    {"Management1", at("10.1.0.77", 16)}};
  Neighbours spine{.device = "spine1", .system_name = {}, .lldp = {}};
  spine.addresses = {{"lo", at("10.0.0.2", 32)},
                     {"Ethernet7", at("10.1.0.0", 31)},
                     {"Ethernet8", at("fd00:1::1", 64)}};
  leaf.sessions = {session("10.1.0.0"), session("fd00:1:0:0::1")};
  CHECK(told(std::vector{leaf, spine}) ==
        "0; leaf1/Ethernet1 spine1/Ethernet7; leaf1/Ethernet2 spine1/Ethernet8");
  // From its other end it is the same cable.
  spine.sessions = {session("10.1.0.1")};
  CHECK(told(std::vector{leaf, spine}).starts_with("0; leaf1/Ethernet1 spine1/Ethernet7; leaf1/E"));
  // What is not established says nothing of a cable.
  leaf.sessions = {session("10.1.0.0", false)};
  spine.sessions = {};
  CHECK(told(std::vector{leaf, spine}) == "0");
}

TEST_CASE("sessions between loopbacks, to strangers and to an address of several are counted") {
  Neighbours leaf{.device = "leaf1", .system_name = {}, .lldp = {}};
  leaf.addresses = {{"lo", at("10.0.0.1", 32)}, {"Ethernet1", at("10.1.0.1", 30)}};
  leaf.sessions = {session("10.0.0.2"), session("10.1.0.2"), session("10.1.0.1")};
  CHECK(told(std::vector{leaf}) == "3");
  Neighbours one{.device = "spine1", .system_name = {}, .lldp = {}};
  one.addresses = {{"lo", at("10.0.0.2", 32)}, {"Ethernet3", at("10.1.0.2", 30)}};
  CHECK(told(std::vector{leaf, one}) == "2; leaf1/Ethernet1 spine1/Ethernet3");
  Neighbours other = one;
  other.device = "spine2";
  CHECK(told(std::vector{leaf, one, other}) == "3");
}

TEST_CASE("LLDP: who calls itself otherwise is the one that was asked") {
  const std::vector<Neighbours> devices{
      {.device = "rtsw:0",
       .system_name = "leaf1.example.net",
       .lldp = {{"Ethernet1", "spine1.example.net", "Ethernet4"}, {"Ethernet9", "gpu1", "eth0"}}},
      {.device = "ctsw:0",
       .system_name = "spine1.example.net",
       .lldp = {{"Ethernet4", "leaf1.example.net", "Ethernet1"}}},
      {.device = "silent", .system_name = "", .lldp = {}}};
  CHECK(told(devices) == "0; ctsw:0/Ethernet4 rtsw:0/Ethernet1; gpu1/eth0 rtsw:0/Ethernet9");
  CHECK(told({}) == "0");
}

}  // namespace
}  // namespace weft::model
