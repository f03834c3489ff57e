// Exchanges of equal parts between all pairs of a group.
#pragma once

#include <string>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

// Everybody sends `bytes` to everybody else, all at once.
Stage all_pairs(const Job& job, std::string name, double bytes);

// As messages of one step. `whose` says which block a message carries: the receiver's (reduce-
// scatter), the sender's (all-gather).
enum class Whose : std::uint8_t { sender, receiver };
void expand_all_pairs(const Job& job, Whose whose, Message::Action action, MessageWriter& out);

}  // namespace weft::workload
