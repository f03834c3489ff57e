// A plan as CSV and as scripts of the usual tools; measured rates.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "operate/validate/rounds.hpp"

namespace weft::operate::validate {

// Columns flow, round, src, dst, gbps, port, path; the rate is that of the slowest link.
std::string to_csv(const model::Fabric& fabric, const Rounds& rounds);
// The inverse. Fails with file and line: Errc::parse, Errc::unknown for a name that the fabric does
// not have, Errc::infeasible where links do not follow one another.
Result<Rounds> read_csv(const model::Fabric& fabric, std::string_view text,
                        const std::string& file);

// A host as the network knows it (host-3), and the place of a NIC in it.
struct End {
  std::string host;
  std::size_t nic = 0;
};
End end_of(const model::Fabric& fabric, model::NodeId nic);

// A shell script that runs the rounds one after another, the flows of a round at once, and leaves
// each result in out/FLOW.txt.
enum class Tool : std::uint8_t { perftest, nccl_tests };
std::string script(const model::Fabric& fabric, const Rounds& rounds, Tool tool);

// Gbps by flow; columns flow and gbps.
using Measured = std::map<std::uint32_t, double>;
Result<Measured> read_measured_csv(std::string_view text, const std::string& file);
// What `tool` printed for one flow, in Gbps. Fails: Errc::parse where it has no result.
Result<double> read_measured(std::string_view text, const std::string& file);

}  // namespace weft::operate::validate
