#include "plan/place/rank_file.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/check.hpp"

namespace weft::plan::place {

std::vector<std::string> rank_file_formats() { return {"slurm", "openmpi", "pytorch"}; }

std::string rank_file(std::string_view format, std::span<const std::string> hosts,
                      std::uint32_t gpus_per_host) {
  std::string out;
  for (std::size_t node = 0; node < hosts.size(); ++node) {
    if (format == "pytorch") out += fmt::format("{} {}\n", node, hosts[node]);
    for (std::uint32_t slot = 0; slot < gpus_per_host; ++slot) {
      if (format == "slurm") out += hosts[node] + "\n";
      if (format == "openmpi")
        out += fmt::format("rank {}={} slot={}\n", node * gpus_per_host + slot, hosts[node], slot);
    }
  }
  WEFT_CHECK(!out.empty() || hosts.empty());
  return out;
}

}  // namespace weft::plan::place
