// FRRouting in a lab: its configuration, and its daemons' command sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/plan.hpp"
#include "adapt/lab/process.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

inline constexpr std::string_view frr_programs = "/usr/lib/frr";

struct FrrSettings {
  bool bfd = false;
  std::uint32_t bfd_interval_ms = 100;
  std::uint32_t paths_max = 1;  // equal next hops of a route
};

// Texts of the daemons' configuration files. `directory` is the node's.
std::string zebra_config(const LabNode& node, const std::string& directory);
std::string bfdd_config(const LabNode& node, const std::string& directory,
                        const FrrSettings& settings);
// eBGP to every neighbour on a switch cable, announcing the addresses of NICs and the loopback.
std::string bgpd_config(const LabPlan& plan, LabNodeId node, const std::string& directory,
                        const FrrSettings& settings);

// "zebra", "bgpd" or "bfdd" of a switch, in its namespace; all its files are in `directory`.
ProcessSpec frr_process(const LabNode& node, std::string_view role, const std::string& directory);
// The socket by which a daemon takes commands.
std::string vty_path(const std::string& directory, std::string_view role);

// A daemon's command line, without a shell in between.
class Vty {
 public:
  // Waits up to `patience` for the daemon to listen, and for each of its answers up to `answer`.
  // Fails: Errc::io when that is over. A daemon that is stopped delays by no more than that.
  static Result<Vty> connect(const std::string& path, std::chrono::milliseconds patience,
                             std::chrono::milliseconds answer = std::chrono::milliseconds(10'000));
  // Runs commands one after another ("configure terminal", "router bgp 65000", ...).
  // Returns what they print. Fails: Errc::io, Errc::value with the daemon's words.
  Result<std::string> run(const std::vector<std::string>& commands);
  void set_answer_patience(std::chrono::milliseconds answer) { answer_ = answer; }

 private:
  Vty(Fd socket, std::chrono::milliseconds answer) : socket_(std::move(socket)), answer_(answer) {}
  Result<std::string> run_one(const std::string& command);
  Fd socket_;
  std::chrono::milliseconds answer_;
};

// Commands that take a switch or one of its cables out of service, and back. With `soft`, traffic
// is only asked to go elsewhere (RFC 8326); with `hard`, sessions are shut down.
enum class DrainStep : std::uint8_t { soft_on, hard_on, hard_off, soft_off };
std::vector<std::string> drain_switch_commands(const LabPlan& plan, LabNodeId node, DrainStep step);
// `ends`: of `node`.
std::vector<std::string> drain_cable_commands(const LabPlan& plan, LabNodeId node,
                                              const std::vector<EndId>& ends, DrainStep step);

}  // namespace weft::adapt::lab
