// Flows and marks as CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operate/te/decide.hpp"

namespace weft::operate::te {

// Columns src and dst (NICs), and perhaps port (UDP source port, 49152), weight (1), priority (0),
// second (port of a second QP; 0: none).
// Fails with file and line: Errc::parse, Errc::unknown for a name that the fabric does not have,
// Errc::value for what is no NIC, a weight that is not above 0, or a flow that is there twice.
Result<std::vector<Flow>> read_flows_csv(const Fabric& fabric, std::string_view text,
                                         const std::string& file);

// Columns src, dst, port, weight, priority, uplink: the link from the source's rack that each flow
// is sent over, empty where hashing chooses. Where flows are divided also second: the port of the
// row that is the other half.
std::string marks_csv(const Fabric& fabric, const route::Zone& zone, std::span<const Flow> flows,
                      const Marks& marks);

// The inverse, and what any other controller wrote in that form. Fails as read_flows_csv, and with
// Errc::infeasible for an uplink that does not leave the source's rack.
Result<MarkedFlows> read_marks_csv(const Fabric& fabric, const route::Zone& zone,
                                   std::string_view text, const std::string& file);

}  // namespace weft::operate::te
