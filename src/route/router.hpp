// Which directed links a flow crosses, under a scheme, a seed and a State.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::route {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// How a message uses the QPs of its connection. `split`: every message in equal parts over all QPs.
// `round_robin`: whole messages in turn (Meta found this the better one; papers: RoCE at scale).
enum class MessageMode : std::uint8_t { split, round_robin };

struct RoutingConfig {
  std::string scheme = "ecmp";  // one of scheme_names()
  bool scheme_given = false;    // in the file; otherwise a transport may prefer another one
  std::uint32_t qps = 1;        // QPs per connection, at least 1
  MessageMode message_mode = MessageMode::split;
  std::string hash = "mix64";   // hash function of the switches
  bool same_hash_seed = false;  // all switches hash alike: polarisation
  bool weighted = false;        // next hops weighted by the live capacity behind them (WCMP)
  // What only packets feel: how long a flow must be silent before `flowlet` chooses again, the
  // number of entropies of `spray` and `reps` (0: as many as there are), the paths of `multipath`.
  Duration flowlet_gap = 100_us;
  std::uint32_t entropies = 0;
  std::uint32_t paths = 4;
  Duration te_sees = {};    // how old the state of the fabric is that the controller of `te` has
  bool te_dead = false;     // the controller has assigned paths, and died at time 0
  Duration te_lease = 3_s;  // marks hold for so long after the controller renewed them
  // By source and destination NIC and QP: the uplink of the source's rack.
  using Marks = std::map<std::tuple<NodeId, NodeId, std::uint32_t>, LinkId>;
  // Where given, `te` assigns nothing itself: these are installed, and other streams are hashed.
  std::shared_ptr<const Marks> te_marks = nullptr;
  // How long failures take to be routed round; none: no time. See heard_late(). The defaults were
  // measured in a lab of 4 racks and 4 spines with FRRouting (docs/routing.md).
  struct Convergence {
    Duration detect = 1'200_us;  // from the failure: to the link's own switch
    Duration bgp = 130'000_us;   // the same: to all routes
    // Of the controller of `te`, which hears of it after `detect`.
    Duration compute = 100_us, install = 1'000_us;
  };
  std::optional<Convergence> convergence;
  // QPs 2k and 2k + 1 take the same path, and different ones where that helps.
  bool te_split = false;
  // QPs carry what their paths can, not equal parts: `collectives: {adaptive: true}`.
  bool weigh_qps = false;
  Where where = {};  // of the section, for messages
};

// Reads `routing:`; errors go to the list. A null section gives the defaults. docs/routing.md
// describes the keys and schemes.
RoutingConfig read_routing(const Config& section, Errors& errors);
std::vector<std::string> scheme_names();

// Where a scheme means something. Those that decide by queues or by packet need the packet engine;
// a Router takes their streams as ecmp or e_ecmp does. Pools of links exist in the fluid one only.
enum class SchemeEngine : std::uint8_t { any, packet, fluid };
// `scheme` must be one of scheme_names().
SchemeEngine engine_of(std::string_view scheme);

// A link, or a pool of links that an ideal balancer treats as one. Ids below link_count() are the
// fabric's links; higher ones are pools, which only the scheme `optimal` makes.
using model::LinkId;

// A link and the share of the flow's bytes that crosses it (1 on a single path).
struct Hop {
  LinkId link;
  double share;
};

// One end-to-end stream that switches see: everything that may enter a hash.
struct Stream {
  NodeId src, dst;                   // NICs; a fabric switch may stand at an end
  std::uint32_t qp = 0;              // index of the QP within the connection, when split
  std::uint32_t message = 0;         // round robin: the message uses QP message mod qps
  std::span<const NodeId> via = {};  // switches the path must pass, in order
};

// Of a packet that is no RoCE.
struct UdpPorts {
  std::uint16_t src = 0, dst = 0;
};

// Bytes between two ends as append_gpu_path takes them.
struct Demand {
  NodeId from, to;
  double bytes;
};

// A flow that a controller is told of: a QP between two NICs.
struct NicDemand {
  NodeId src, dst;
  std::uint32_t qp;
  double bytes;
};

using Path = std::vector<LinkId>;  // in path order; a detour may cross a link twice

class Router {
 public:
  // `fabric` must outlive the router. Fails: Errc::unsupported for a scheme the fabric does not
  // allow (UGAL on a Clos), Errc::unknown for an unknown name.
  static Result<Router> create(const Fabric& fabric, const RoutingConfig& config,
                               std::uint64_t seed);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  const Fabric& fabric() const;
  const RoutingConfig& config() const;

  // Paths asked for from now on avoid what is down, and what is draining where they can. Ask again
  // for every path that crosses a changed link or starts or ends in a host with one. Cost: what
  // changed is forgotten and found again on demand.
  //
  // With RoutingConfig::convergence paths are those that State::routed() and seen() gave, except
  // that a switch leaves out what noticed() has of its own links while it has others: they may
  // cross links that are down.
  void set_state(const model::State& state);

  // Tells the controller of scheme `te`, and whoever weighs QPs, of flows that may be under way
  // together, before their paths are asked for; their links are shared as evenly as can be. Nothing
  // otherwise.
  void declare(std::span<const Demand> together);
  // The same flows as the network has them: by pair of NICs, what stays inside a host left out, and
  // divided over the QPs that differ. By source, destination, QP.
  std::vector<NicDemand> nic_demands(std::span<const Demand> together);
  bool listens() const;  // whether declare() does something
  // What came of it so far, in words; empty where nobody listens.
  std::string controller_report() const;

  // Into how many streams one message divides: the QPs, when it is split over them and the scheme
  // may send them different ways; else 1.
  std::uint32_t stream_count() const;
  // What of a message between two ends (as of append_gpu_path) each of its streams carries, sum 1;
  // empty: equal parts. Only with weigh_qps, a scheme that sends QPs different ways and messages
  // that are split, for pairs that were declared. Valid until the next call.
  std::span<const double> qp_shares(NodeId from, NodeId to);

  // Appends the stream's links in path order, each once (a path that `via` leads over a link twice
  // has it with share 2). False, with nothing appended, when no live path exists or `via` names
  // what is no switch. Deterministic (but see ugal); costs some 20 ns a hop once the destination's
  // next hops are cached.
  bool append_path(const Stream& stream, std::vector<Hop>& out);

  // Appends the links that UDP packets with these ports cross between two NICs. Switches hash what
  // is no RoCE by addresses and ports over all shortest paths, whatever the scheme does with RoCE.
  // False, with nothing appended, when there is no live path. Costs some 20 ns a hop, as
  // append_path.
  bool append_udp_path(NodeId src_nic, NodeId dst_nic, const UdpPorts& ports, Path& out);

  // From GPU to GPU: over NVLink where it joins them, else over PCIe inside a host; otherwise
  // through each GPU's NIC, with the PCIe hops that can limit (an inner link that is no slower than
  // all NICs it serves cannot, and is left out, which is exact). GPUs whose NICs no cables join go
  // over NVLink to a GPU with another NIC first: at the source, on the destination's rail, where
  // possible (PXN). An end may also be a NIC, a fabric switch (in-network reduction), or a host,
  // which goes through the front-end NIC cabled to it and over that cable (storage hosts). From an
  // end to itself: true, with nothing appended.
  bool append_gpu_path(NodeId src_gpu, NodeId dst_gpu, std::uint32_t qp, std::uint32_t message,
                       std::vector<Hop>& out);

  // Every link that some stream with these ends and `via` may cross, for tier statistics: those of
  // all shortest paths (of detours too, for Valiant and UGAL). Appends, without repeats.
  void append_usable(const Stream& stream, std::vector<LinkId>& out);

  // Appends up to `count` shortest paths between two NICs (or switches) that share no link between
  // switches, as many as there are; the NICs' own links are shared evenly. Which ones depends on
  // the pair and the seed. Cost: O(count x links of all shortest paths).
  void append_disjoint_paths(NodeId src, NodeId dst, std::uint32_t count, std::vector<Path>& out);

  // For choices between minimal ways and detours packet by packet (UGAL): hashes `count` times, as
  // that many streams of the QP would, and appends the different paths that come out. Nothing for
  // schemes that know no detours, and where there is no path; no detours where none is possible.
  void append_candidate_paths(NodeId src, NodeId dst, std::uint32_t qp, std::uint32_t count,
                              std::vector<Path>& minimal, std::vector<Path>& detours);

  // Latency of the way append_gpu_path takes between GPUs, NICs or switches, on the first of its
  // shortest paths in link order; duration_max when there is none.
  Duration latency(NodeId src, NodeId dst);
  // Seconds that a path takes which append_path or append_gpu_path gave for these ends, not scaled:
  // between hosts the sum over its hops, by their shares where it spreads over several paths, and a
  // pool by its longest link; inside hosts the way of latency(), which has links that paths omit.
  double path_latency_s(NodeId src, NodeId dst, std::span<const Hop> path);
  // Seconds of the way inside both hosts that lie on links which append_gpu_path leaves out.
  double omitted_latency_s(NodeId src, NodeId dst);
  // That of the path that append_gpu_path would give the first QP; 0 where there is none. Asking
  // for it puts no load on it (ugal).
  double present_latency_s(NodeId src, NodeId dst);

  // For messages: Errc::infeasible "gpu:3 and gpu:99 are not connected: ..." with the reason, when
  // append_gpu_path would return false.
  Status check_connected(NodeId src, NodeId dst);

  // Links and pools. Pools appear as paths are asked for.
  std::size_t resource_count() const;
  // Bytes per second of a link (0 when down) or pool under the current state.
  double capacity(LinkId resource) const;
  // The links behind a resource: itself, or the pool's members. Reports spread the load of a pool
  // over its live members in proportion to their capacity.
  std::span<const LinkId> members(LinkId resource) const;

 private:
  class Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::route
