// Which GPUs a job gets, and in which rank order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/rng.hpp"
#include "model/fabric/fabric.hpp"
#include "model/work/step_cost.hpp"
#include "plan/place/host_names.hpp"
#include "plan/place/rank_file.hpp"

namespace weft::plan {

using model::Fabric;
using model::NodeId;

// - topology: whole hosts, from the racks with most free hosts on, so that the job is in few racks;
// - rack_order: the free GPUs of lowest index;
// - fragmented: whole hosts drawn at random; ranks follow the fabric's order;
// - random: whole hosts drawn at random, ranks in the order drawn: the GPUs of a host, in order,
//   then those of the next;
// - scattered: GPUs drawn at random, ranks in the order drawn;
// - fitted: whole hosts in few zones, ranks in the order that sends the fewest bytes between zones,
//   then between racks (plan/place);
// - list: the GPUs named by `ranks:`.
//
// Whole hosts: all of their free GPUs, but of the last host only as many as are needed.
std::vector<std::string> placement_names();

// What the job of this name draws its GPUs from.
inline Rng placement_stream(std::uint64_t seed, std::string_view job) {
  return Rng(seed).stream("placement").stream(job);
}

// Hands out the GPUs of one fabric; every GPU goes to one job at most.
class Placer {
 public:
  explicit Placer(const Fabric& fabric);

  std::size_t free_count() const { return free_count_; }
  // `count` GPUs for a job, by any placement but list. `rng` is the job's own stream, so that jobs
  // do not shift one another; see placement_stream.
  // Fails: Errc::infeasible when fewer are free, with the arithmetic; as place_fitted.
  Result<std::vector<NodeId>> place(std::string_view placement, std::size_t count, Rng rng,
                                    const Where& where);
  // Whole free hosts, for place: fitted; `cost` says what the ranks send, nullptr that nothing is
  // known. `note`: what the order costs, where it could choose.
  // Fails: Errc::infeasible when too few hosts are wholly free, or hosts differ in GPUs.
  Result<std::vector<NodeId>> place_fitted(std::size_t count, const model::StepCost* cost,
                                           const Rng& rng, const Where& where, std::string& note);
  // The GPUs of a list: names of GPUs, or of hosts and scopes, which stand for all of their GPUs;
  // also host lists such as "tux[0-3,9]". Fails: an unknown name, a GPU twice or already taken.
  Result<std::vector<NodeId>> place_list(std::span<const Token> names);
  // The GPUs of a rank file. Fails: as place_list; more ranks on a host than it has GPUs.
  Result<std::vector<NodeId>> place_lines(std::span<const place::RankLine> lines);

 private:
  std::vector<NodeId> take_hosts(const std::vector<NodeId>& hosts, std::size_t count);
  std::vector<NodeId> hosts_by_free_racks() const;
  std::vector<NodeId> draw_hosts(std::size_t count, Rng& rng) const;
  std::size_t free_on(NodeId host) const;
  void take(NodeId gpu);
  void take_listed(NodeId gpu, const Where& where, std::vector<NodeId>& out, Errors& errors);
  const place::HostNames& host_names();
  Result<std::vector<NodeId>> gpus_named(const Token& name);
  bool is_free(NodeId gpu) const { return free_[fabric_.role_index(gpu)]; }

  const Fabric& fabric_;
  std::vector<bool> free_;  // by GPU index
  std::size_t free_count_;
  std::optional<place::HostNames> host_names_;  // made when a list names a host
};

}  // namespace weft::plan
