// The explicit form of a fabric: every scope, node and cable written out as YAML, and its reader.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// What a reader builds at most; larger requests are refused with the arithmetic. A short text can
// ask for a large fabric, so whoever reads text of strangers lowers these.
struct FabricLimits {
  std::int64_t nodes = 8'000'000;
  std::int64_t links = link_count_max;  // directed
};

// Reads `scopes:`, `nodes:` and `links:` (docs/formats-fabric.md) of a `fabric:` section:
//   fabric:
//     rate: 400 Gbps                       # of links that give none
//     nodes:
//       - {role: nic, count: 4}            # nic:0 .. nic:3
//       - {role: tor}
//     links: ["nic:0..3--tor:0"]           # every left end to every right end
// Fails with every error found (up to 100), each with its position: unknown names with the nearest
// known one, names given twice, rates of zero, GPUs outside hosts, counts beyond `limits`.
// Cost: O(nodes + links + text).
Result<Fabric> read_fabric_nodes(const Config& section, const FabricLimits& limits = {});

// A whole document, `fabric: {scopes, nodes, links}`, that parse_yaml and read_fabric_nodes turn
// into an equal fabric. Repeated patterns are folded into ranges. Cost: O(nodes + links).
std::string to_fabric_yaml(const Fabric& fabric);

// Digest of all columns. Fabrics that differ in any node, name, lane, link, rate, latency,
// interface, scope or GPU-to-NIC assignment have different digests. Cost: O(nodes + links).
std::uint64_t digest(const Fabric& fabric);

// Whether a node, role or scope may be called that: not empty, at most 200 characters, letters,
// digits and "_.:@+-", no "--", "->" or ".." (the naming grammar uses them), not a bare number.
// Fails: Errc::value.
Status check_name(const Token& name);

}  // namespace weft::model
