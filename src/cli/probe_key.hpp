// What `probe` and `respond` share.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "observe/probe/siphash.hpp"

namespace weft::cli {

// Fails: Errc::io, Errc::parse, and Errc::value where no file was named.
Result<observe::probe::Key> read_probe_key(const std::string& path);
// From the system's own generator: for what nobody must guess, and no result depends on.
std::uint64_t random_number();

}  // namespace weft::cli
