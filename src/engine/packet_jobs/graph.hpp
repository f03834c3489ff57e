// Operation graphs (training steps, recorded workloads) as messages, and their times from the ends
// of these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/jobs/jobs.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet/phases.hpp"
#include "engine/packet_jobs/lowering.hpp"
#include "engine/packet_jobs/message_graph.hpp"
#include "model/fabric/state.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// Of a graph that has been appended. Operations are numbered actor by actor, in program order;
// those of iteration i follow each other from i * operations on.
struct LoweredGraph {
  double share = 1;  // of its bytes and of the time it computes, that runs
  std::uint32_t iterations = 0, operations = 0;
  std::vector<std::uint32_t> first;                 // by actor: its first operation
  std::vector<std::uint32_t> slowest;               // by actor: its slowest rank
  std::vector<MessageId> ready, end;                // by iteration and operation
  std::vector<MessageId> actor_end;                 // by iteration and actor
  MessageId messages_first = 0, messages_last = 0;  // all of the graph: [first, last)
  std::vector<Phase> phases;  // calls of collectives, and messages between two actors
  // By operation: sends and recvs that meet, and members of one call, have one number.
  std::vector<std::uint32_t> meeting;
  // Of one iteration, what ranks send, by dimension and distance.
  std::array<std::array<double, model::distance_count>, model::dimension_count> bytes{};
  std::vector<std::string> notes;
};

// An operation graph, as the fluid engine takes it. One that should run until it is steady runs
// twice.
//
// Semantics: those of engine::GraphRun, as far as local events allow.
// - An actor's events happen at its first rank. What it does next it knows at once on all its
//   ranks, which should stand in one host.
// - Operations of one stream run one at a time, in program order.
// - A recv that is ready lets its sender start by a message of grant_bytes; a send ends when it is
//   acknowledged, a recv when the last byte has come.
// - A collective has no barrier: each rank begins when it is ready (lower_collective()).
// - Compute takes its time times the slowdown of its slowest GPU in `state`, that at the start;
//   communication beside it does not slow it.
// - An actor begins an iteration when it has ended the one before.
//
// With a `share` below 1 that share of all bytes and of all compute runs, by the algorithms that
// the library chooses for the whole.
//
// Fails: Errc::infeasible where program order makes a circle with other dependencies, and beyond
// packet_messages_max together with the `messages` that there are; as check_overhead().
// Cost: O(messages).
Result<LoweredGraph> lower_graph(const engine::GraphJob& job, const model::State& state,
                                 route::Router& router, double messages, MessageGraph& graph,
                                 double share = 1);

// Times, and where they went in the last iteration that ended. While an actor computes, nothing
// else counts; otherwise it is exposed to the communication that has moved longest, and idle when
// none moves. Who waited for whom is not found out.
engine::GraphResult fold_graph(const engine::GraphJob& job, const LoweredGraph& lowered,
                               std::span<const MessageEnd> ends);

}  // namespace weft::engine::packet
