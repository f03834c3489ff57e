// The probes of a site: which hosts answer, which paths packets take, who probes what; made anew
// when routes change.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/site/site_file.hpp"
#include "app/site/supervisor.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

// Addresses by node; the first of each. Fails: Errc::io, Errc::unknown for nodes that the fabric
// does not have, Errc::parse.
using NodeAddresses = std::map<model::NodeId, std::string>;
Result<NodeAddresses> read_addresses(const model::Fabric& fabric, const std::string& path);

// Hosts that take part. Fails: Errc::unknown for a name that is no host of the fabric.
Result<std::vector<model::NodeId>> probe_hosts(const model::Fabric& fabric,
                                               const SiteProbes& probes);

// NICs that a sweep from `nic` goes to: of other racks where there are any, evenly spread over the
// fabric, at most `most`.
std::vector<model::NodeId> sweep_targets(const model::Fabric& fabric,
                                         const std::vector<model::NodeId>& nics, model::NodeId nic,
                                         std::size_t most);

class ProbePlan {
 public:
  struct State {
    std::uint64_t made = 0;  // plans so far
    std::size_t flows = 0;   // of the last one
    Timestamp at;            // when its probers were started
    double took_s = 0;       // from the reason to the start of the last prober
    std::string reason, problem;
    bool is_busy = false;
  };

  // All must outlive it. `program`: of weft, here.
  ProbePlan(const Site& site, const model::Fabric& fabric, NodeAddresses addresses,
            std::vector<model::NodeId> hosts, std::string program, Supervisor& supervisor,
            port::Clock& clock);

  void start_responders();
  // Learns paths, plans without what is `down` (names), distributes, and starts all probers anew.
  // While that is under way, the last reason that came leads to one more time.
  void renew(std::string reason, std::vector<std::string> down);
  // Of a process that lived once; whether it was one of these.
  bool take(const std::string& name, int status, std::string text);
  // Starts what may start now; renews a plan that is too old.
  void step();
  const State& state() const { return state_; }
  // No more renewals; forgets what is under way.
  void stop();

 private:
  enum class Phase : std::uint8_t { idle, copying_files, sweeping, planning, copying_plan };
  struct Renewal {
    std::string reason;
    std::vector<std::string> down;
    port::Instant since;
  };
  std::vector<std::string> at(model::NodeId host, std::vector<std::string> arguments) const;
  std::vector<std::string> copy_of(model::NodeId host, const std::string& file) const;
  std::string ports() const;                         // of the plan that is being made
  std::string there(const std::string& file) const;  // its path on a host
  void begin(Renewal renewal);
  void queue_copies(const std::vector<std::string>& files);
  void queue_sweeps();
  void queue_sweep(model::NodeId nic, bool of_answers);
  void advance();  // to the next phase, when nothing is queued or under way
  void plan();
  void start_probers(const std::string& lines);
  void finish(std::string problem);  // "": it went well
  ProcessSpec once(std::string name, std::vector<std::string> argv) const;

  const Site& site_;
  const SiteProbes& probes_;
  const model::Fabric& fabric_;
  NodeAddresses addresses_;
  std::vector<model::NodeId> hosts_, nics_;
  std::string program_;
  Supervisor& supervisor_;
  port::Clock& clock_;
  Phase phase_ = Phase::idle;
  bool has_files_ = false;
  std::optional<Renewal> now_, next_;
  std::deque<ProcessSpec> queue_;
  std::size_t running_ = 0;
  std::uint64_t generation_ = 0;   // of the processes that are under way
  std::vector<std::string> down_;  // of the last renewal
  std::string paths_, plan_;       // JSON lines
  port::Instant made_at_;
  State state_;
};

}  // namespace weft::app
