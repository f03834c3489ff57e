// Answers that are refused, odd or cut: whatever is not understood is unknown.
#include "adapt/devices/dialect.hpp"

#include <doctest/doctest.h>

#include "adapt/devices/session.hpp"

namespace weft::adapt::devices {
namespace {

using port::Service;

const Dialect& dialect(std::string_view name) { return **find_dialect({name, {}}); }
Service mode(std::string_view name, const std::vector<std::string>& answers) {
  return dialect(name).read_switch(answers);
}
PortState port_of(std::string_view name, const std::vector<std::string>& answers) {
  return dialect(name).read_port(answers);
}

constexpr PortState unknown, open{Level::up, Level::up}, shut{Level::down, Level::down},
    broken{Level::up, Level::down};

TEST_CASE("system modes") {
  CHECK(mode("sonic", {"BGP0 : System Mode: Normal\nBGP1 : System Mode: Normal\n"}) ==
        Service::in_service);
  CHECK(mode("sonic", {"BGP0 : System Mode: Maintenance\nBGP1 : System Mode: Normal\n"}) ==
        Service::draining);
  CHECK(mode("sonic", {"System Mode: Not consistent"}) == Service::draining);
  CHECK(mode("nxos", {"System Mode: Maintenance\r\nTimer: not running"}) == Service::drained);
  for (const char* odd : {"", "System Mode:", "System Mode: No external neighbors", "Mode: Normal",
                          "System Mode: Normal -> Maintenance", "System Mode: Maint",
                          "System Mode: Normal\nSystem Mode: ?"})
    CHECK(mode("sonic", {odd}) == Service::unknown);
}

TEST_CASE("maintenance of EOS") {
  const auto of = [](const std::string& state) {
    return mode("eos", {R"({"units": {"System": {"state": ")" + state + R"("}}})"});
  };
  CHECK(of("active") == Service::in_service);
  CHECK(of("underMaintenance") == Service::drained);
  CHECK(of("maintenanceModeEnter") == Service::draining);
  CHECK(of("maintenanceModeExit") == Service::draining);
  CHECK(mode("eos", {R"({"units": {}})"}) == Service::in_service);
  for (const char* odd :
       {"", "{", "[]", "{}", "7", R"({"units": []})", R"({"units": {"System": 3}})",
        R"({"units": {"System": {"state": 1}}})", "% Invalid input"})
    CHECK(mode("eos", {odd}) == Service::unknown);
  CHECK(of("else") == Service::unknown);
}

TEST_CASE("sessions of FRR") {
  const std::string end = "router bgp 1\nexit\n!\nend\n";
  const auto peers = [](std::string_view a, std::string_view b) {
    return R"({"ipv4Unicast": {"peers": {"10.0.0.1": {"state": ")" + std::string(a) +
           R"("}}}, "ipv6Unicast": {"as": 1, "peers": {"fe80::1": {"state": ")" + std::string(b) +
           R"("}}}})";
  };
  const std::string up = "Established", off = "Idle (Admin)";
  CHECK(mode("frr", {peers(up, up), end}) == Service::in_service);
  CHECK(mode("frr", {peers(up, "Active"), end}) == Service::in_service);
  CHECK(mode("frr", {peers(up, off), end}) == Service::draining);
  CHECK(mode("frr", {peers(up, up), " bgp graceful-shutdown\n" + end}) == Service::draining);
  CHECK(mode("frr", {peers(off, off), " bgp graceful-shutdown\n" + end}) == Service::drained);
  CHECK(mode("frr", {peers(up, up), "router bgp 1\n"}) == Service::unknown);  // cut
  for (const char* odd :
       {"", "{}", "[]", R"({"ipv4Unicast": {"peers": {}}})", R"({"ipv4Unicast": 3})",
        R"({"ipv4Unicast": {"peers": {"10.0.0.1": {}}}})", "% BGP instance not found"})
    CHECK(mode("frr", {odd, end}) == Service::unknown);
}

TEST_CASE("ports") {
  CHECK(port_of("sonic", {"up\n", "down\n"}) == broken);
  CHECK(port_of("sonic", {"", "up"}) == PortState{Level::unknown, Level::up});
  const auto eos = [](const std::string& status) {
    return port_of(
        "eos", {R"({"interfaceStatuses": {"Ethernet1": {"linkStatus": ")" + status + R"("}}})"});
  };
  CHECK(eos("connected") == open);
  CHECK(eos("disabled") == shut);
  CHECK(eos("errdisabled") == broken);
  CHECK(eos("else") == unknown);
  CHECK(port_of("frr", {R"({"swp1": {"administrativeStatus": "down"}})"}) == shut);
  const std::string nxos_up =
      R"({"TABLE_interface": {"ROW_interface": {"state": "up", "admin_state": "up"}}})";
  CHECK(port_of("nxos", {nxos_up}) == open);
  for (const std::string name : {"eos", "nxos", "frr"})
    for (const std::string odd :
         {"", "{}", "[]", "3", R"({"interfaceStatuses": {}})", R"({"interfaceStatuses": {"a": 1}})",
          R"({"a": 1})", R"({"TABLE_interface": {"ROW_interface": [{"admin_state": "up"}]}})"})
      CHECK(port_of(name, {odd}) == unknown);
  for (std::size_t cut = 0; cut < nxos_up.size(); ++cut)
    CHECK(port_of("nxos", {nxos_up.substr(0, cut)}) == unknown);
}

TEST_CASE("answers of eAPI and NX-API that are none") {
  const Commands two{"a", "b"};
  for (const Transport by : {Transport::eapi, Transport::nxapi})
    for (const std::string odd : {"", "[]", "{}", "7", "<html>", R"({"result": {}})",
                                  R"({"result": [{}]})", R"([{"result": {"msg": "x"}}])"})
      CHECK(read_rpc_answer(by, odd, two).error().code == Errc::io);
  const auto refused = read_rpc_answer(
      Transport::nxapi,
      R"([{"result": null}, {"error": {"message": "a\nb", "data": {"msg": "c"}}}])", two);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().what == "it refuses: a b: c");
  const std::string deep =
      R"({"result": [{}, )" + std::string(20'000, '[') + std::string(20'000, ']') + "]}";
  CHECK(read_rpc_answer(Transport::eapi, deep, two).has_value());
}

}  // namespace
}  // namespace weft::adapt::devices
