// InfiniBand fabrics as ibnetdiscover of infiniband-diags prints them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/formats/cabling.hpp"

namespace weft::model {

// Whether the text begins as that output does.
bool is_ibnetdiscover(std::string_view text);

// Switch, Ca and Rt records with their ports, from a plain, -g or -f run. A Ca is a NIC; its host
// is the first word of its description "HOST DEVICE" (the kernel's rule), otherwise the Ca for
// itself. Routers and the switches' own aggregation nodes are left out with a note. Rates are data
// rates: lanes times 2, 4, 8, 10, 13.6, 25, 50, 100, 200 Gbit/s for SDR, DDR, QDR, FDR10, FDR, EDR,
// HDR, NDR, XDR; a line without width and speed, as old versions print it, has none. Fails with
// file:line:column and every error found: lines of another form, nodes or ports given twice, ports
// beyond those of the node, cables whose two ends do not say the same, unknown widths and speeds.
// Bounds: 256 MiB of text. Cost: O(text). From: ibnetdiscover(8) and its source in rdma-core;
// InfiniBand Architecture Specification volume 1, PortInfo LinkWidthActive and LinkSpeedActive.
Result<Cabling> read_ibnetdiscover(std::string_view text, const std::string& file);

}  // namespace weft::model
