// Lists of cables in CSV, of one's own or out of NetBox.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/formats/cabling.hpp"

namespace weft::model {

// What tells hosts from switches.
struct CableListOptions {
  std::string_view roles = {};     // CSV "device,role": host, ignore, or what a switch is called
  std::string roles_file = {};     // its name, for errors
  std::int64_t nics_per_host = 0;  // 0: unknown
};

// One cable a line. Columns: a_device,a_port,b_device,b_port, optionally rate,length,kind; or
// those of NetBox, side_a_device,... (bulk import) or "Device A",... (table export). Without a
// role, a device is a host or a switch by a word in its name ("gpu12", "leaf3"), otherwise a host
// if it has as many NICs as hosts have. Port "mlx5_0/2" of a host is a second port of NIC mlx5_0.
// Power cables and those that are not connected are left out with a note.
// Fails with file:line:column and every error found: columns, ports used twice, rates and lengths
// without a unit, ends at patch panels, devices of unknown kind, roles of devices without cables.
// Bounds: 256 MiB of text. Cost: O(text log devices).
// From: NetBox, netbox/dcim/tables/cables.py and forms/bulk_import.py.
Result<Cabling> read_cable_list(std::string_view text, const std::string& file,
                                const CableListOptions& options);

}  // namespace weft::model
