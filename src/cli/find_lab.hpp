// Running labs, for commands that work on them.
#pragma once

#include <string>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"

namespace weft::cli {

// The lab of that name, after going to where it lives: its own namespaces, where it was brought up
// without root. Fails: as adapt::lab::open_lab.
Result<adapt::lab::Lab> find_lab(const std::string& name);

}  // namespace weft::cli
