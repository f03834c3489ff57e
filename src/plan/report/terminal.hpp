// Between the files of this room: the parts of the terminal's text.
#pragma once

#include <string>

#include "model/outcome.hpp"

namespace weft::plan::report {

// What terminal_text prints, except the time the run itself took.
std::string table_text(const model::Outcome& outcome);

}  // namespace weft::plan::report
