// Host list expressions as Slurm writes them: "tux[0-3,12],login1", "r[0-1]n[00-15]".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::model {

// The names that an expression stands for, in order. Several brackets in one name multiply, the
// last one fastest; leading zeros of a range's first number set the width.
// Fails: Errc::parse on what the grammar does not allow (the "x" of three-dimensional machines
// included), Errc::value when more than `most` names would come out.
Result<std::vector<std::string>> expand_hostlist(const Token& expression, std::size_t most);

// The shortest list of that kind: names with one prefix share one bracket, neighbours one range.
// Names keep their order within a prefix; expand_hostlist gives back the same set.
std::string compress_hostlist(std::span<const std::string> names);

}  // namespace weft::model
