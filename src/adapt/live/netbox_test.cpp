#include "adapt/live/netbox.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace weft::adapt::live {
namespace {

// A NetBox over HTTP on this machine: pages and cables in the shapes that its documentation and
// issues show (docs/integrations/rest-api.md; issues 9853 and 14274 of netbox-community/netbox).
class NetBoxServer {
 public:
  std::vector<std::string> rows;
  std::vector<std::string> asked;
  std::size_t page = 2;
  std::string scheme = "Token 0123";
  std::function<std::string(std::size_t offset)> next_of;  // the default: as NetBox does

  NetBoxServer() {
    server_.Get("/netbox/api/dcim/cables/", [this](const auto& request, auto& response) {
      asked.push_back(request.target);
      if (request.get_header_value("Authorization") != scheme) {
        response.status = 403;
        response.set_content(R"({"detail":"Invalid token"})", "application/json");
        return;
      }
      const std::size_t offset =
          request.has_param("offset") ? std::stoul(request.get_param_value("offset")) : 0;
      std::string list;
      for (std::size_t i = offset; i < std::min(rows.size(), offset + page); ++i)
        list += (list.empty() ? "" : ",") + rows[i];
      std::string next = "null";
      if (offset + page < rows.size() || next_of)
        next = next_of ? next_of(offset)
                       : fmt::format(R"("http://netbox.example/netbox/api/dcim/cables/)"
                                     R"(?limit={}&offset={}&site=ams1")",
                                     page, offset + page);
      response.set_content(fmt::format(R"({{"count":{},"next":{},"previous":null,"results":[{}]}})",
                                       rows.size(), next, list),
                           "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~NetBoxServer() { server_.stop(); }

  Result<NetBoxCables> read(const std::string& token = "0123", const std::string& filter = "") {
    auto client = open_service({fmt::format("http://127.0.0.1:{}", port_), "--netbox"}, {},
                               std::chrono::seconds(5));
    REQUIRE(client.has_value());
    return read_netbox_cables(*client, {.prefix = "/netbox", .token = token, .filter = filter});
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

std::string interface(std::string_view device, std::string_view name) {
  return fmt::format(
      R"({{"object_type":"dcim.interface","object_id":7,"object":{{"id":7,"display":"{1}",)"
      R"("device":{{"id":3,"name":"{0}","display":"{0}"}},"name":"{1}","cable":1}}}})",
      device, name);
}
std::string cable(int id, const std::string& a, const std::string& b,
                  std::string_view status = "connected") {
  return fmt::format(
      R"({{"id":{},"type":"dac-passive","a_terminations":[{}],"b_terminations":[{}],)"
      R"("status":{{"value":"{}","label":"?"}},"length":2.0}})",
      id, a, b, status);
}

std::string list_of(const Result<NetBoxCables>& read) {
  if (!read) return read.error().text();
  std::string out;
  for (const model::SeenCable& row : read->cables)
    out += fmt::format("{}{}/{} {}/{}", out.empty() ? "" : "; ", row.a.device, row.a.port,
                       row.b.device, row.b.port);
  return out;
}

TEST_CASE("cables of all pages, by whatever name NetBox calls itself; both shapes of an end") {
  NetBoxServer server;
  server.rows = {
      cable(1, interface("leaf1", "Ethernet1"), interface("spine1", "Ethernet1")),
      cable(2, interface("gpu1", "mlx5_0"), interface("leaf1", "Ethernet9")),
      // 3.2 and older.
      R"({"id":3,"termination_a_type":"dcim.interface","termination_a":{"id":1,"name":"Ethernet2",)"
      R"("device":{"id":2,"name":"leaf1"}},"termination_b_type":"dcim.interface","termination_b":)"
      R"({"id":5,"name":"Ethernet2","device":{"id":4,"name":"spine1"}},)"
      R"("status":{"value":"connected"}})"};
  const auto read = server.read("0123", "site=ams1");
  CHECK(list_of(read) ==
        "gpu1/mlx5_0 leaf1/Ethernet9; leaf1/Ethernet1 spine1/Ethernet1; "
        "leaf1/Ethernet2 spine1/Ethernet2");
  CHECK(read->pages == 2);
  CHECK(server.asked ==
        std::vector<std::string>{"/netbox/api/dcim/cables/?limit=1000&site=ams1",
                                 "/netbox/api/dcim/cables/?limit=2&offset=2&site=ams1"});
}

TEST_CASE("what is no cable between interfaces is left out, and counted") {
  NetBoxServer server;
  const std::string panel =
      R"({"object_type":"dcim.frontport","object":{"name":"1","device":{"name":"pp"}}})";
  const std::string power =
      R"({"object_type":"dcim.powerport","object":{"name":"1","device":{"name":"pp"}}})";
  const std::string circuit =
      R"({"object_type":"circuits.circuittermination","object":{"term_side":"Z"}})";
  const std::string one = interface("leaf1", "Ethernet1"), two = interface("leaf2", "Ethernet1");
  server.rows = {cable(1, one, two, "planned"),
                 cable(2, one, panel),
                 cable(3, power, power),
                 cable(4, circuit, one),
                 cable(5, one + "," + interface("leaf1", "Ethernet2"),
                       two + "," + interface("leaf2", "Ethernet2")),
                 cable(6, one + "," + interface("leaf1", "Ethernet3"), two),
                 R"({"id":7})",
                 R"("not an object")",
                 fmt::format(R"({{"id":8,"a_terminations":[{}],"b_terminations":7}})",
                             R"({"object_type":"dcim.interface","object":null})")};
  const auto read = server.read();
  CHECK(list_of(read) == "leaf1/Ethernet1 leaf2/Ethernet1; leaf1/Ethernet2 leaf2/Ethernet2");
  CHECK(read->not_connected == 1);
  CHECK(read->panels == std::vector<std::string>{"cable 2"});
  CHECK(read->others == 6);
}

TEST_CASE("tokens of both versions; refusals, other answers and pages without end") {
  NetBoxServer server;
  server.rows = {cable(1, interface("a", "1"), interface("b", "1"))};
  CHECK(list_of(server.read("other")).find("Invalid token") != std::string::npos);
  server.scheme = "Bearer nbt_key.secret";
  CHECK(list_of(server.read("nbt_key.secret")) == "a/1 b/1");
  server.scheme = "Token 0123";
  CHECK(list_of(server.read("0123", "site=ams1 x")).find("is not a URL query") !=
        std::string::npos);
  server.next_of = [](std::size_t) { return R"("http://elsewhere.example/login")"; };
  CHECK(list_of(server.read()).find("is not the next page") != std::string::npos);
  server.next_of = [](std::size_t) { return R"("/netbox/api/dcim/cables/?offset=0")"; };
  CHECK(list_of(server.read()).find("more than 1000000 cables") != std::string::npos);
  CHECK(server.asked.size() < 1'100);
}

}  // namespace
}  // namespace weft::adapt::live
