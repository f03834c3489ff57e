// Finds operations of a graph that wait for each other in a circle.
#pragma once

#include <cstdint>
#include <string>

#include "model/work/op_graph.hpp"

namespace weft::model {

// Actors times operations up to which a circle between roles is looked for between actors as well.
inline constexpr std::uint64_t circle_instances_max = 20'000'000;

// The circle in words, "" where there is none. `graph` has been checked otherwise, and
// Program::match is filled. Streams are not looked at: they order operations as they come.
//
// A send and its recv are one node, and so are the calls that meet in a collective. Roles are
// looked at first: a program stands for all its actors, and slots of programs that meet in any
// group stand for one group. Following a circle of actors role by role gives a circle of roles, so
// no circle of roles means none at all. The reverse holds without collectives, but not with them
// (groups {A, B} and {B, C} need not block each other), so a circle of roles is looked for again
// between actors; beyond circle_instances_max it is reported as it stands.
// Cost: O(operations + actors * slots) without a circle of roles, else O(actors * operations).
std::string find_circle(const OpGraph& graph);

}  // namespace weft::model
