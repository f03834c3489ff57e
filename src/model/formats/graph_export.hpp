// Fabrics as graphs for other programs: Graphviz DOT, and GraphML in both directions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/formats/fabric_yaml.hpp"

namespace weft::model {

// What of the fabric a drawing shows.
enum class GraphDetail : std::uint8_t {
  network,  // NICs, switches, and what else has a cable to them
  all,      // the inside of hosts too
};

// An undirected graph, one edge a cable, scopes as nested clusters. Cost: O(nodes + links).
std::string to_dot(const Fabric& fabric, GraphDetail detail = GraphDetail::network);

// An undirected graph, one edge a cable, everything included. Node attributes: role, kind, scope
// ("zone:0/rack:3"), host, rail, plane, nic (of a GPU); edge attributes: rate, latency (as text
// with units), interface_a, interface_b. Node ids are names. Cost: O(nodes + links).
std::string to_graphml(const Fabric& fabric);

struct GraphmlOptions {
  Rate rate;  // of edges that give none; 0: they are errors
  FabricLimits limits;
};

// GraphML back into a fabric. Files of other programs are read by the attributes named above, all
// of which may be missing (`rate`: see the options): then a node is a fabric_switch of role
// "switch", or what its kind or role says, and stands in the scope "zone:0"; a latency is 500 ns.
// Other attributes are not read. Directed edges and undirected ones both stand for a cable. Ids
// become names, those that are bare numbers with an "n" before them. Fails with file:line:column
// and every error found: broken XML, ids given twice or not known, hyperedges, ports and nested
// graphs, and all that read_fabric_nodes refuses. Bounds: 256 MiB of text, `limits`.
Result<Fabric> read_graphml(std::string_view text, const std::string& file,
                            const GraphmlOptions& options = {});

}  // namespace weft::model
