// Central traffic engineering of a zone: which uplink every flow takes, decided anew each time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/fabric/state.hpp"
#include "route/router.hpp"
#include "route/zone.hpp"

namespace weft::operate::te {

using model::Fabric;
using model::NodeId;

// What switches can tell apart: a pair of NICs and the UDP source port of a QP.
struct Flow {
  NodeId src, dst;
  std::uint16_t port = 0xC000;
  double weight = 1;           // bytes, or bytes per second: above 0
  std::uint32_t priority = 0;  // 0 is placed first
  std::uint16_t second = 0;    // port of a second QP, which may take half of it; 0: there is none
};

// By flow: the column of the zone (route::Zone) that it is sent to, or Zone::none: left to the
// switches' hashing over the routes beneath.
using Marks = std::vector<std::uint32_t>;

struct MarkedFlows {
  std::vector<Flow> flows;
  Marks marks;
};
// As switches see them: behind the flows the second QPs of those that have a mark in `second` (by
// flow, or empty), each with half of the weight. Flow::second stays where a flow is divided.
MarkedFlows by_qp(std::span<const Flow> flows, const Marks& marks, const Marks& second);

// What becomes of the links between racks and spines. Load is weight over capacity, in shares of
// the fastest uplink.
struct Judgement {
  double worst = 0;                    // with the marks; what has none goes as hashed
  double hashed = 0;                   // of plain ECMP over live links, without any mark
  model::LinkId worst_link;            // invalid where nothing is loaded
  std::vector<std::uint32_t> dead;     // flows whose mark leads over what is down or not there
  std::vector<std::uint32_t> cut_off;  // flows that have no live path at all
};
// `hashing`: a router with the zone's fabric and ECMP; its state is set to `state`. Independent of
// how marks were found. Cost: two paths a flow, some 100 ns each.
Judgement judge(const route::Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& marks);

// What by_qp() divided as flows again, as their owner has them: of each flow whose `second` is the
// port of another flow between the same NICs, both. In the order of the flows.
std::vector<Flow> whole_flows(std::span<const Flow> by_qp);

struct Settings {
  // Whether flows that were not hit may move to make room.
  route::Assignment::Others others = route::Assignment::Others::may_move;
  // Whether flows that have a second QP may be divided over both, where that makes the worst link
  // at least 1 % better (route::place).
  bool split = false;
};

struct Decision {
  Marks marks;
  Marks second;               // of second QPs; Zone::none: the flow is not divided
  Judgement judgement;        // of these marks; `hashed`: of the flows undivided
  double bound = 0;           // no marks of undivided flows have a worst link below
  std::uint32_t divided = 0;  // flows over two QPs
  std::uint32_t hit = 0;      // had no mark, or one over a dead link
  std::uint32_t moved = 0;    // had a live one and got another
  std::uint32_t without = 0;  // between racks, and no live path
  // Why nothing is marked, in words: the guard found the marks worse than hashing. Else empty.
  std::string refused;
};

// Stateless: what was decided before comes in as `installed` and `installed_second` (empty:
// nothing). Flows inside a rack need no mark and get none. The guard: where the worst link would
// carry more than with plain ECMP, all is left to hashing, and `refused` says why. Deterministic.
// Cost: that of route::place, and of judge().
Decision decide(const route::Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& installed, const Settings& settings = {},
                const Marks& installed_second = {});

}  // namespace weft::operate::te
