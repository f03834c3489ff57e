#include "adapt/lab/sessions.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <nlohmann/json.hpp>
#include <string>

#include "adapt/lab/frr.hpp"

namespace weft::adapt::lab {

Result<std::map<Ipv4, Session>> parse_sessions(std::string_view text) {
  using nlohmann::json;
  std::map<Ipv4, Session> out;
  try {
    const json root = json::parse(text);
    const auto peers = root.find("peers");
    if (peers == root.end()) return out;
    for (const auto& [name, peer] : peers->items()) {
      in_addr address{};
      if (inet_pton(AF_INET, name.c_str(), &address) != 1) continue;
      const std::string state = peer.at("state").get<std::string>();
      Session session = state == "Established" ? Session::established : Session::down;
      if (state.find("Admin") != std::string::npos) session = Session::shut;
      out.emplace(ntohl(address.s_addr), session);
    }
  } catch (const json::exception& error) {
    return fail(Errc::parse, {}, std::string("sessions of a daemon: ") + error.what());
  }
  return out;
}

Result<std::map<Ipv4, Session>> read_sessions(const Lab& lab, LabNodeId node,
                                              std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  WEFT_TRY(Vty vty, Vty::connect(vty_path(lab.node_directory(node), "bgpd"),
                                 std::chrono::milliseconds(0), patience));
  vty.set_answer_patience(patience - std::chrono::duration_cast<std::chrono::milliseconds>(
                                         std::chrono::steady_clock::now() - start));
  WEFT_TRY(const std::string answer, vty.run({"show bgp ipv4 unicast summary json"}));
  return parse_sessions(answer);
}

}  // namespace weft::adapt::lab
