// The "connection matrix" text form of flow sets, which the htsim family of simulators reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/line_reader.hpp"
#include "base/units.hpp"
#include "model/fabric/flow_set.hpp"

namespace weft::model {

struct ConnectionMatrixOptions {
  // Of a `start`. The form names none, and programs read it as ps or us, or not at all; without one
  // here only 0 is accepted.
  enum class StartUnit : std::uint8_t { none, ps, ns, us } start_unit = StartUnit::none;
};

// Whether a text has this form: its first word is `Nodes`.
bool is_connection_matrix(std::string_view text);

// Reads
//   Nodes 4
//   Connections 2
//   Triggers 1
//   0->1 id 1 start 0 size 2000000 send_done_trigger 1
//   1->2 id 2 trigger 1 size 2000000
//   trigger id 1 oneshot
// Node i is GPU i of the fabric (its NIC is meant), or NIC i of a fabric without GPUs. Sizes are in
// bytes. A flow with a trigger starts when the flow that names it as send_done_trigger has ended.
// Blank lines and lines that start with '#' are skipped.
// Fails with every error up to a hundred, each with line and column: counts that do not fit, nodes
// beyond the fabric, ids and triggers that stand twice, triggers that nobody fires or two flows do,
// circles; Errc::unsupported for what has no counterpart here (barriers, multishots).
// Cost: some 200 ns a line; 60 bytes a flow, of which 32 stay.
Result<FlowSet> read_connection_matrix(const Fabric& fabric, LineReader& lines,
                                       const ConnectionMatrixOptions& options);

}  // namespace weft::model
