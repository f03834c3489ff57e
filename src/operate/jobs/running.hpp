// Jobs that run on the fabric now, as a scheduler lists them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"
#include "plan/place/host_names.hpp"

namespace weft::operate::jobs {

struct RunningJob {
  std::string id, name, user;
  std::optional<Timestamp> since;
  std::vector<std::uint32_t> hosts;    // of Fabric::hosts(); in rank order where it is known
  std::vector<std::string> strangers;  // its nodes that the fabric does not have
};

// The scheduler's names of hosts.
class NodeNames {
 public:
  explicit NodeNames(const model::Fabric& fabric) : fabric_(&fabric), hosts_(fabric) {}
  const model::Fabric& fabric() const { return *fabric_; }

  // CSV with the columns node and host, for nodes that the scheduler calls something else.
  // Fails with every host that is unknown and every node that is named twice.
  Status add_csv(std::string_view csv, const std::string& file);
  // Of a name with a domain also what stands before the first dot.
  std::optional<std::uint32_t> find(std::string_view node) const;
  // As schedulers write it.
  const std::string& name(std::uint32_t host) const { return hosts_.name(host); }
  // Adds the node to the job: as host, or as stranger.
  void add(RunningJob& job, const std::string& node) const;

 private:
  const model::Fabric* fabric_;
  plan::place::HostNames hosts_;
  std::map<std::string, std::uint32_t, std::less<>> called_;
};

// What `squeue --noheader --format=%A|%u|%S|%N|%j` prints, SLURM_TIME_FORMAT being %s: one job a
// line. A start that is no number is not known. Fails with every line that is none: Errc::parse.
inline constexpr std::string_view squeue_format = "%A|%u|%S|%N|%j";
Result<std::vector<RunningJob>> read_squeue(std::string_view text, const NodeNames& names,
                                            const std::string& file);

// What `kubectl get pods --output=json` prints. Pods that run, are on a node and ask for one of
// `resources` ("nvidia.com/gpu") belong to the job that a label names (JobSet, Kubeflow's training
// operator, LeaderWorkerSet, Volcano, Ray, Job, in this order), or else to what owns them, or are a
// job of their own; its id is "namespace/name". Hosts stand in the order of the pods' indexes.
// Fails: Errc::parse.
Result<std::vector<RunningJob>> read_pods(std::string_view json, const NodeNames& names,
                                          std::span<const std::string> resources,
                                          const std::string& file);

// id, name, user, since, hosts and strangers as host lists, host_count, and its racks in their
// order of first appearance: how many of its hosts are there, and these hosts and their NICs by the
// fabric's names, as a host list.
JsonObject to_json(const RunningJob& job, const NodeNames& names);

}  // namespace weft::operate::jobs
