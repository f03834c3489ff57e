// What this machine can do for a lab: each feature is tried, in a throw-away namespace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::adapt::lab {

enum class Mode : std::uint8_t {
  direct,          // this process may make namespaces
  user_namespace,  // it may inside a user namespace of its own
  none
};
std::string_view to_text(Mode mode);

enum class Need : std::uint8_t {
  lab,     // without it there is no lab
  option,  // some option or fault needs it
  not_used
};
struct Feature {
  std::string name;  // "nft_egress"
  Need need = Need::lab;
  bool works = false;  // a fact that was found, not a choice
  std::string detail;  // a version, or what failed and with which error
  std::string advice;  // what it is for, and what to do where it does not work
};

struct Diagnosis {
  Mode mode = Mode::none;
  std::vector<Feature> features;

  // Unknown names do not work.
  bool has(std::string_view feature) const;
  // Whether labs with static routes, and with FRRouting, can be brought up.
  bool can_lab() const;
  bool can_frr() const { return can_lab() && has("frr"); }
  // What plays silent loss ("nft", "none") and delay, corruption and the like ("wire", "none").
  std::string_view loss_injector() const;
  std::string_view delay_injector() const;
  // The features that `can_lab` misses, in words; for tests that are skipped.
  std::string why_not() const;
};

// Tries everything: privileges, user_namespace, netns, veth, multipath_fields (hash policy 3),
// multipath_seed, nft_egress, packet_socket, tbf, netem, bpf, tun, frr, bfdd, snmpd, neighbours.
// Leaves nothing behind. In user-namespace mode kernel features are those inside such a namespace.
// Must be called before the process has threads. Cost: about 0.2 s, a few child processes.
Diagnosis diagnose();

std::string to_json(const Diagnosis& diagnosis);

}  // namespace weft::adapt::lab
