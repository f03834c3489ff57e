// Dumps of PyTorch's flight recorder, versions 2.4 to 2.10, as JSON or pickle. Pickle is read as
// data: an object that would have to be constructed is refused.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

// Bytes that must be readable behind a text that is given to a JSON reader.
inline constexpr std::size_t json_padding = 64;

// One rank's dump into `job`. `content` has json_padding more bytes of capacity. The rank is the
// number that the file's name ends with ("nccl_trace_rank_12"), as PyTorch names them.
// Fails: Errc::parse, naming the byte; Errc::value on what makes no sense; Errc::unsupported on
// another version.
Status read_flight(std::string& content, const std::string& file, JobBuilder& job);

// The number at the end of a file's name, before its last ending. Fails: Errc::value.
Result<std::uint32_t> rank_of_file(const std::string& file);

}  // namespace weft::observe::colltrace
