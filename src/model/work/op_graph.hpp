// What jobs do: compute, collectives and messages that wait for one another, stored once per role.
//
// A program is what one role does in an iteration. An actor runs a program on a few ranks that act
// in lockstep (a tensor-parallel group inside a host); 16,384 ranks that play 16 roles cost 16
// programs and 2,048 small actors. Recorded traces have one program and one actor per rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::model {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  send_recv
};

inline constexpr std::size_t collective_op_count = 6;

// What a communication serves. `other`: a recorded group whose purpose the trace does not tell.
enum class Dimension : std::uint8_t { tp, cp, pp, dp, ep, other };
inline constexpr std::size_t dimension_count = 6;
std::string_view to_text(Dimension dimension);  // "tp"

// An operation starts when all it waits for have ended. Operations of one actor and one `stream`
// other than 0 also run one at a time, in the order in which they become ready (then by index).
struct Operation {
  enum class Kind : std::uint8_t { compute, collective, send, recv };
  Kind kind = Kind::compute;
  Dimension dimension = Dimension::other;  // of communication
  CollectiveOp collective = CollectiveOp::all_reduce;
  std::uint8_t stream = 0;
  std::uint32_t slot = 0;   // send, recv: which peer of the actor; collective: which of its groups
  std::uint32_t tag = 0;    // send, recv: a pair has equal tags; the k-th send meets the k-th recv
  std::uint32_t label = 0;  // into OpGraph::labels
  double seconds = 0;       // compute: on a healthy GPU, communication folded into it included
  double bytes = 0;         // send: of each rank; collective: per rank, as nccl-tests count
  std::uint32_t after_first = 0, after_count = 0;  // into Program::after
};

// Part of a compute operation that is communication inside a host, timed by a closed form: it is
// exposed, but neither a slow GPU nor the fabric changes it.
struct Folded {
  std::uint32_t operation;
  Dimension dimension;
  double seconds;
};

// A message moves when both its send and its recv are ready, so a recv that waits holds its sender
// back; both end when the last byte has arrived. A collective moves when all members are ready.
struct Program {
  std::string role;  // "pp 3": names the lane of the trace
  std::vector<Operation> operations;
  std::vector<std::uint32_t> after;  // indexes of operations
  std::vector<Folded> folded;        // by operation, ascending
  // Filled by OpGraph::finish(), by operation. Send, recv: the counterpart's index in the program
  // of the peer. Collective: its number among those of its slot.
  std::vector<std::uint32_t> match;
};

// Ranks that do collectives together. `ranks` has `rows` rows of equal length: one collective per
// row, side by side; the group's operation ends when all rows have ended.
struct RankGroup {
  Dimension dimension = Dimension::other;
  std::uint32_t rows = 1;
  std::vector<std::uint32_t> ranks;  // of the job
  std::uint32_t actors = 0;          // arrivals to wait for: members that are in the graph
  std::size_t size() const { return ranks.size() / rows; }
  std::span<const std::uint32_t> row(std::uint32_t r) const {
    return std::span(ranks).subspan(r * size(), size());
  }
};

struct Actor {
  std::uint32_t program = 0;
  std::uint32_t peer_first = 0;   // into OpGraph::peers, one for each peer slot of the program
  std::uint32_t group_first = 0;  // into OpGraph::memberships
};

struct OpGraph {
  std::vector<Program> programs;
  std::vector<std::string> labels;
  std::uint32_t ranks_per_actor = 1;
  std::vector<Actor> actors;
  std::vector<std::uint32_t> actor_ranks;  // ranks_per_actor for each actor, in order
  std::vector<std::uint32_t> peers;        // actors
  std::vector<std::uint32_t> memberships;  // groups
  std::vector<RankGroup> groups;
  // Ranks of the job. Larger than the ranks of all actors where symmetry let some be left out.
  std::uint32_t rank_count = 0;

  std::span<const std::uint32_t> ranks_of(std::uint32_t actor) const {
    return std::span(actor_ranks).subspan(std::size_t{actor} * ranks_per_actor, ranks_per_actor);
  }
  std::uint32_t label(std::string_view text);  // adds it where it is new; O(labels)

  // Checks the whole and fills Program::match. Fails: Errc::value on an index out of range, times
  // or sizes that are negative or not finite, a circle of operations that wait for each other (the
  // circle is named), a send without recv or with another size, members of a group that do not call
  // the same collectives, and actors of one program whose peers in one slot have several programs.
  // Cost: O(operations + actors * slots).
  Status finish();
};

// Appends `operation`, which waits for `after`; returns its index.
std::uint32_t add_operation(Program& program, Operation operation,
                            std::span<const std::uint32_t> after);

}  // namespace weft::model
