// Command lines with places to fill in, as operators write them into configuration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "os/run_program.hpp"

namespace weft::adapt::live {

// The name that stands in braces, and what takes its place.
using Placeholder = std::pair<std::string_view, std::string>;

// The list under `key`: a program by its path, then arguments that may hold {placeholders} of the
// names given. Braces around anything but small letters and "_" are text: arguments may be JSON.
// Errors: no path, an unknown placeholder; nothing at all where it is `required`.
std::vector<std::string> read_argv(Reader& reader, std::string_view key,
                                   std::span<const std::string_view> names, bool required);

// Fails: Errc::value where a value at the beginning of an argument would be taken for an option.
Result<std::vector<std::string>> fill_argv(const std::vector<std::string>& argv,
                                           std::span<const Placeholder> values);

// The end of what a program said, on one line; of its errors where there are any.
std::string last_words(const ProgramOutcome& outcome);
// "/bin/x was not done after 20 ms, and was killed", "/bin/x ended with exit code 3: last words".
std::string how_it_ended(const ProgramSpec& spec, const ProgramOutcome& outcome);

}  // namespace weft::adapt::live
