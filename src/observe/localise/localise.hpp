// Which links, cables, cards, switches or hosts lose or damage probes: from evidence about paths to
// causes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
#include "observe/localise/counters.hpp"

namespace weft::observe::localise {

using model::Evidence;
using model::EvidenceSet;
using model::Fabric;
using model::LinkId;
using model::NodeId;

// `link` is one direction of a cable; `card` is a range of ports of a switch.
enum class EntityKind : std::uint8_t { link, cable, nic, card, fabric_switch, host };
std::string_view to_text(EntityKind kind);

// Which way the affected packets pass the ports of a card.
enum class Flow : std::uint8_t { both, in, out };
std::string_view to_text(Flow flow);

struct Entity {
  EntityKind kind = EntityKind::link;
  std::uint32_t id = 0;                         // LinkId, CableId or NodeId, as the kind says
  std::uint32_t port_first = 0, port_last = 0;  // of a card
  Flow flow = Flow::both;                       // of a card

  friend bool operator==(const Entity&, const Entity&) = default;
};
// In the fabric's grammar: "a->b", "a--b", "nic:3", "ctsw:5", "host:7"; a card "ctsw:5/0-13".
std::string name(const Fabric& fabric, const Entity& entity);

enum class Finding : std::uint8_t {
  loss,        // of every probe alike
  class_loss,  // in one traffic class only, and no counter explains it
  tuple_loss,  // some 5-tuples lose (nearly) everything, the others nothing
  congestion,  // in one traffic class, as the counters of the link say
  dead,        // a host answers nobody
  starved,     // a host that loses or delays probes on all its paths: it stalls, its links do not
  unused,      // a link believed up that no path crosses, where chance would have sent many
  unexpected,  // a link believed down that probes crossed
  corruption,  // probes come through it with wrong payloads
  duplicates,  // answers come through it twice
  delay,       // probes take longer over it than queues explain
  route,       // a switch does not forward what goes to one destination
};
std::string_view to_text(Finding finding);

struct Verdict {
  Entity entity;
  Finding finding = Finding::loss;
  NodeId destination;      // of route: the NIC or host that is not reached
  double probability = 0;  // that this entity, rather than chance or another, is the cause
  // Share of probes lost there; tuple_loss: share of tuples hit; corruption, duplicates: share that
  // is damaged, or comes twice; delay: share of flows and windows that take longer.
  double loss = 0;
  double loss_low = 0, loss_high = 0;  // 95 % interval
  std::string traffic_class;           // of class_loss and congestion; else empty
  std::uint64_t probes = 0;            // that crossed the entity
  double lost = 0;                     // or damaged, of them: those that this verdict explains
  // 0: evidence suffices. Else a suspect rather than a verdict: so many more probes over the entity
  // would decide.
  std::uint64_t needs_probes = 0;
  std::vector<Entity> alternatives;  // that explain the same losses about as well
};

// What the evidence could have shown at all.
struct Coverage {
  double loss_of_interest = 0;     // as asked for
  std::size_t links = 0;           // that carry the fabric's traffic, and are believed up
  std::size_t links_short = 0;     // on which a loss of interest could have passed unseen
  std::uint64_t needs_probes = 0;  // more crossings, over all these links
  std::vector<LinkId> shortest;    // the first of them by id, at most 100
};

struct Report {
  Timestamp begin, end;           // of the first and the last window; end is a window's start
  std::vector<Verdict> verdicts;  // most probable first, then by entity
  std::vector<Verdict> suspects;  // needs_probes > 0, likeliest first, at most 20
  Coverage coverage;
  std::uint64_t probes = 0, lost = 0, late = 0, damaged = 0;
  double unexplained = 0;  // lost probes that no verdict explains
  double background = 0;   // loss of a good link, as learned
};

struct Options {
  // Ports of a line card: then cards are ports 0..n-1, n..2n-1, ... of each switch. 0: not known,
  // and any range of ports may share a cause.
  std::uint32_t card_ports = 0;
  // Coverage tells where a loss of this size could hide.
  double loss_of_interest = 1e-3;
  // What a flow's median round-trip time may be above that of others over as many links: more than
  // queues hold at the rates of this fabric.
  double delay_us = 1000;
};

// The model. A probe crosses links and, at both ends, hosts. Each has a loss intensity
// -log(1 - loss); intensities add along a path. Good links share a small intensity that is learned
// from the same evidence. Causes raise the intensity of a link, both directions of a cable, all
// links of a NIC, of a range of ports, or of a switch, or of a host; in one traffic class or in
// all; or hit some 5-tuples only. Causes are accepted one by one while the evidence for them
// outweighs how many there are to choose from and how rare they are. A switch is one cause where
// that is the better explanation than its parts or the hosts at it. One parameter set serves all
// fabrics and volumes of evidence.
// Damage, duplicates and delay are judged apart, by the same model: in place of a lost probe stands
// one that came damaged, or twice, of those that came; or a flow whose median answer in a window
// took too long, of flows and windows. Where there are none, that costs nothing.
// Rows without a path count as mixtures over the shortest paths of their pair, and no verdict rests
// on them alone.
class Localiser {
 public:
  // `fabric` must outlive the localiser. Cost: O(nodes + links).
  explicit Localiser(const Fabric& fabric, const Options& options = {});
  Localiser(Localiser&&) noexcept;
  Localiser& operator=(Localiser&&) noexcept;
  ~Localiser();

  // Of `counters`: those of the window. `believed`: what the operator thinks is down or drained;
  // none: all is up. Rows whose path crosses such a part blame nobody: their path is old. The same
  // bytes for any order of rows and counters. Cost: one pass over the rows; then by the number of
  // rows that lost something.
  Report run(const EvidenceSet& evidence, std::span<const LinkCounters> counters = {},
             const model::State* believed = nullptr) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The report as JSON lines {"entity", "kind", "probability", "window": [begin, end],
// "needs_probes", ...}: verdicts, then suspects with "kind": "insufficient_evidence", then one
// such line for the fabric where links are short of evidence.
std::string to_json_lines(const Fabric& fabric, const Report& report);

}  // namespace weft::observe::localise
