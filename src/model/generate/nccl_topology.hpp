// The inside of a host as NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) describes it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/generate/host.hpp"

namespace weft::model {

// Parts: GPUs by `dev`, or by PCI bus id where the file has none; NICs likewise, one per <net>, or
// one per network device where there is none; a part "pcie" for each bridge; one "nvswitch" for all
// NVSwitch links, as the chips of a host form one crossbar. The slower of <net>s with unequal
// `speed`, and Ethernet devices beside InfiniBand ones where no <net> stands, are front-end NICs
// (role "fe_nic"). All processors are the host: links between sockets are not modelled.
// Rates: PCIe from link_speed x link_width less line coding, NVLink nominal by `sm`, net by
// `speed`. Fails with file:line:column: broken XML, unknown elements and device classes, missing or
// odd speeds, links to devices that are not in the file, no GPU and no NIC at all. Bounds: 4 MiB,
// 32 levels, 1,024 GPUs and NICs each. Attributes that say nothing about the graph (guid, affinity,
// ...) are not read.
Result<HostSpec> read_nccl_topology(std::string_view text, const std::string& file);

}  // namespace weft::model
