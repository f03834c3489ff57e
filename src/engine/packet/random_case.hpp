// For tests of this room: small runs drawn from a seed, and message sets written as lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/packet/message.hpp"
#include "engine/packet/options.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// A message with the events it waits for, each of an earlier message in the list.
struct MessageDraft {
  struct Wait {
    std::uint32_t message;
    Dependent::When when = Dependent::When::acknowledged;
  };
  std::uint32_t connection = 0;
  std::uint64_t bytes = 0;
  Ps not_before_ps = 0;
  std::uint32_t delay_ns = 0;
  std::vector<Wait> waits = {};
};

MessageSet make_messages(std::vector<Connection> connections,
                         const std::vector<MessageDraft>& drafts);

struct RandomCase {
  std::string text;  // one line
  Fabric fabric;
  route::RoutingConfig routing;
  std::uint64_t routing_seed = 1;
  std::vector<Connection> connections;
  std::vector<MessageDraft> drafts;
  Options options;
};

// How losses may come about: not at all (no bound on buffers, or PFC with room for what is on the
// way), by a headroom that may be too small, or by small buffers without PFC.
enum class Losses : std::uint8_t { none_unbounded, none_paused, headroom, buffer };
inline constexpr std::uint64_t losses_count = 4;

// A star, a two-tier Clos or a fat tree (k = 4) of at most 16 NICs, with equal cables or any; a
// permutation, incast, chained all-to-all or random messages of at most some 3,000 packets; options
// of all kinds that run_reference() knows. Seeds take the kinds of Losses in turn.
RandomCase random_case(std::uint64_t seed);

}  // namespace weft::engine::packet
