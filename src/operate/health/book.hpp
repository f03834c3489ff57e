// What feeds have said of links that are not well, link by link: the evidence behind a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/record.hpp"
#include "model/fabric/state.hpp"
#include "operate/health/table.hpp"

namespace weft::operate::health {

struct LinkCondition {
  double rate = 1;  // of nominal; 0: carries nothing
  double loss = 0;  // share of packets
  std::uint16_t evidence = 0;
};
using Conditions = std::map<model::LinkId, LinkCondition>;  // those that are not well

// From records, as triage has them. `link_down`, `nic_down`, `bgp_down` and their like hold until
// the kind that ends them is said of the same part; a cable is up when every end that said
// otherwise says so. `probe_loss` (its value is the share lost), `probe_latency`, `crc_errors`,
// `discards`, `nic_errors`, `ecn_marks`, `pfc_pauses` are repeated while they last, and hold for
// hold_ns after they were last said. Any record of a port, cable or NIC may have the attribute
// "rate_share": what is left of its nominal rate, 1 when all is there again.
class Book {
 public:
  static constexpr std::int64_t hold_ns = 60 * ns_per_s;
  explicit Book(const model::Fabric& fabric) : fabric_(fabric) {}  // which must outlive it

  // Whether it changed which links are cut off. Cost: O(parts that are not well).
  bool take(const model::RecordSet& set, const model::Record& row);
  // `out`: what is out of service. Cost: O(links) where something is down or out, else O(parts that
  // are not well).
  Conditions conditions(Timestamp now, std::span<const model::Entity> out) const;

  // Links that are down or have lost their session, both ways. Cost: O(parts that are not well).
  std::set<model::LinkId> cut_off() const;

 private:
  struct Mark {
    double value = 0;
    Timestamp until;
  };
  using Key = std::pair<model::Entity, std::uint16_t>;  // part, one bit of evidence
  bool end(const model::Entity& part, std::uint16_t evidence);

  const model::Fabric& fabric_;
  std::map<Key, Mark> marks_;
};

// Which ports and NICs of one device run slower than they should, from the speeds that their
// drivers report. What a port should run at is the most that it, or any other of the device with
// the same nominal rate, was ever seen at, but no more than that rate: in a lab drivers report what
// no cable has.
class RateWatch {
 public:
  struct Reading {
    model::Entity part;
    double nominal_bps, speed_bps;
  };
  struct Change {
    model::Entity part;
    double share;  // of what it should run at; 1: all of it
    bool is_back;  // and less was told of it before
  };
  using Most = std::map<double, double>;  // speed, by nominal rate
  static constexpr std::int64_t again_ns = 10 * ns_per_s;

  // `most`: what a watch of the same device had seen before.
  explicit RateWatch(Most most = {}) : most_(std::move(most)) {
    for (auto& [nominal, speed] : most_) speed = std::min(speed, nominal);
  }

  // All readings of one time; speeds that are not above 0 are not known. Returns what is to be
  // told: what changed; what is slow, again every again_ns; and each part the first time it is
  // read, since nobody knows what was last told of it, unless nothing shows what its rate should
  // be.
  std::vector<Change> take(std::span<const Reading> readings, Timestamp now);
  const Most& most() const { return most_; }

 private:
  struct Told {
    double share = 1;
    Timestamp at;
  };
  Most most_;
  std::map<model::Entity, Told> told_;
};

// As a fabric's state has it: what carries nothing is down, what is slow or loses is degraded.
model::State state_of(const Conditions& conditions);
// The same back, for states that were not observed.
Conditions conditions_of(const model::Fabric& fabric, const model::State& state);

// Rails and links; no advice. Links in order of rate, then loss, worst first.
// Cost: O(NICs + links that are not well).
HealthTable table_of(const model::Fabric& fabric, const Conditions& conditions, Timestamp now);

}  // namespace weft::operate::health
