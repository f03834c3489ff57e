#include "adapt/snmp/neighbours.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "adapt/snmp/test_kit.hpp"
#include "base/rng.hpp"

namespace weft::adapt::snmp {
namespace {

using test::integer;
using test::text;

constexpr int is_mac = 3, is_name = 5, is_local = 7, chassis_is_mac = 4;

// Answers of an agent, by hand from IEEE 802.1AB-2005, 12.
struct Speaker {
  std::vector<Answered> answers{neighbour_groups(model::NeighbourProtocol::lldp).size() + 1};

  void put(std::string_view at, Value value) {
    const auto oid = parse_oid(at);
    REQUIRE(oid.has_value());
    answers[0].values[*oid] = std::move(value);
  }
  void port(int number, int kind, const std::string& id, const std::string& description) {
    put(fmt::format("1.0.8802.1.1.2.1.3.7.1.2.{}", number), integer(kind));
    put(fmt::format("1.0.8802.1.1.2.1.3.7.1.3.{}", number), text(id));
    put(fmt::format("1.0.8802.1.1.2.1.3.7.1.4.{}", number), text(description));
  }
  void remote(int port, int index, const std::string& name, int kind, const std::string& id,
              const std::string& description) {
    const auto column = [&](int n) {
      return fmt::format("1.0.8802.1.1.2.1.4.1.1.{}.4711.{}.{}", n, port, index);
    };
    put(column(4), integer(chassis_is_mac));
    put(column(5), text(std::string("\x00\x1b\x21\xff\x00\x0a", 6)));
    put(column(6), integer(kind));
    put(column(7), text(id));
    put(column(8), text(description));
    put(column(9), text(name));
  }
  std::string seen() const {
    std::string out;
    for (const model::LldpNeighbour& row : lldp_neighbours(answers).lldp)
      out += fmt::format("{}{}: {} {}", out.empty() ? "" : "; ", row.port, row.device,
                         row.device_port);
    return out;
  }
};

TEST_CASE("ports by interface name, by description where the id is an address, else by id") {
  Speaker d;
  d.port(1, is_name, "Ethernet1", "uplink to spine");
  d.port(2, is_local, "512", "et-0/0/2");
  d.port(3, is_mac, std::string("\x00\x1b\x21\x00\x00\x01", 6), "");
  d.remote(1, 1, "ctsw:0.example.net", is_name, "Ethernet7", "to rtsw");
  d.remote(2, 1, "host7", is_mac, std::string("\x00\x1b\x21\x00\x00\x02", 6), "mlx5_0");
  d.remote(3, 1, "", is_local, "3", "");
  d.remote(9, 1, "tap", is_name, "x", "");
  CHECK(d.seen() ==
        "00:1b:21:00:00:01: 00:1b:21:ff:00:0a 3; 9: tap x; Ethernet1: ctsw:0.example.net "
        "Ethernet7; et-0/0/2: host7 mlx5_0");
}

TEST_CASE("several neighbours at one port, rows cut short, and rows of other tables") {
  Speaker d;
  d.port(1, is_name, "swp1", "");
  d.remote(1, 1, "b", is_name, "swp2", "");
  d.remote(1, 2, "a", is_name, "swp3", "");
  d.put("1.0.8802.1.1.2.1.4.1.1.9.1.1", text("an index too short"));
  d.put("1.0.8802.1.1.2.1.4.2.1.9.1.1.1", text("a management address"));
  d.put("1.0.8802.1.1.2.1.4.1.1.7.5.1.3", text("a port of nobody"));
  CHECK(d.seen() == "swp1: a swp3; swp1: b swp2");
  CHECK(lldp_neighbours({}).lldp.empty());
  d.put("1.0.8802.1.1.2.1.3.3.0", text("leaf1"));
  CHECK(lldp_neighbours(d.answers).system_name == "leaf1");
}

// By hand from RFC 4273 (bgpPeerTable) and RFC 1213 (ipAddrTable).
struct Router {
  Speaker rows;

  void address(const std::string& ip, int index, const std::string& mask) {
    rows.put("1.3.6.1.2.1.4.20.1.2." + ip, integer(index));
    rows.put("1.3.6.1.2.1.4.20.1.3." + ip, {.kind = Value::Kind::address, .text = mask});
  }
  void peer(const std::string& ip, int state) {
    rows.put("1.3.6.1.2.1.15.3.1.2." + ip, integer(state));
  }
  std::string seen() const {
    const model::Neighbours said = bgp_neighbours(rows.answers);
    std::string out;
    for (const model::PortAddress& one : said.addresses)
      out += fmt::format("{} {}; ", one.port, one.address.text());
    for (const model::BgpSession& one : said.sessions)
      out += fmt::format("{}{}; ", one.peer.text(), one.is_established ? " up" : "");
    return out;
  }
};

TEST_CASE("BGP: sessions by state, addresses with their masks, interfaces by name") {
  Router d;
  d.rows.put("1.3.6.1.2.1.2.2.1.2.7", text("et7"));
  d.rows.put("1.3.6.1.2.1.31.1.1.1.1.7", text("Ethernet7"));
  d.rows.put("1.3.6.1.2.1.2.2.1.2.1", text("lo"));
  d.address("10.1.0.2", 7, std::string("\xff\xff\xff\xfe", 4));
  d.address("10.0.0.1", 1, std::string("\xff\xff\xff\xff", 4));
  d.address("10.9.0.1", 99, std::string("\xff\xff\0\0", 4));  // of no interface
  d.address("10.8.0.1", 1, "x");                              // no mask
  d.peer("10.1.0.3", 6);
  d.peer("10.1.0.5", 3);
  d.rows.put("1.3.6.1.2.1.15.3.1.2.10.1.0", integer(6));      // too short
  d.rows.put("1.3.6.1.2.1.15.3.1.2.10.1.0.256", integer(6));  // no address
  CHECK(d.seen() == "lo 10.0.0.1; Ethernet7 10.1.0.2/31; lo 10.8.0.1; 10.1.0.3 up; 10.1.0.5; ");
}

TEST_CASE("whatever an agent says is taken, or left out") {
  Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    Speaker d;
    d.port(1, is_name, "swp1", "");
    d.remote(1, 1, "b", is_name, "swp2", "");
    for (int i = 0; i < 30; ++i) {
      Oid oid{1, 0, 8802, 1, 1, 2, 1};
      oid.push_back(3 + static_cast<std::uint32_t>(rng.below(2)));
      for (std::uint64_t n = rng.below(8); n > 0; --n)
        oid.push_back(static_cast<std::uint32_t>(rng.below(10)));
      Value value{.kind = static_cast<Value::Kind>(rng.below(6))};
      value.integer = static_cast<std::int64_t>(rng.next());
      for (std::uint64_t n = rng.below(9); n > 0; --n)
        value.text += static_cast<char>(rng.below(256));
      d.answers[rng.below(d.answers.size())].values[oid] = value;
      for (Oid column : {Oid{1, 3, 6, 1, 2, 1, 15, 3, 1, 2}, Oid{1, 3, 6, 1, 2, 1, 4, 20, 1, 2},
                         Oid{1, 3, 6, 1, 2, 1, 4, 20, 1, 3}, if_name}) {
        for (std::uint64_t n = rng.below(6); n > 0; --n)
          column.push_back(static_cast<std::uint32_t>(rng.below(300)));
        d.answers[0].values[column] = value;
      }
    }
    for (const model::PortAddress& row : bgp_neighbours(d.answers).addresses)
      CHECK(row.address.length <= 32);
    for (const model::LldpNeighbour& row : lldp_neighbours(d.answers).lldp)
      CHECK_FALSE(row.device.empty());
  }
}

}  // namespace
}  // namespace weft::adapt::snmp
