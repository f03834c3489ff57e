// read_cable_list: no input crashes, and what it accepts makes a fabric or a refusal with a hint; a
// fabric has every cable of the list but those from a device to itself. What follows a line "%" is
// the list of roles.
#include "fuzz.hpp"
#include "model/formats/cable_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::model;
  const auto refused = [](const weft::Error& error) {
    WEFT_CHECK(!error.what.empty() && !error.hint.empty());
    return 0;
  };
  const std::string_view text = weft::fuzz::text_of(data, size);
  const std::size_t cut = text.find("\n%\n");
  const bool has_roles = cut != text.npos;
  const auto read = read_cable_list(text.substr(0, cut), "fuzz.csv",
                                    {.roles = has_roles ? text.substr(cut + 3) : "",
                                     .roles_file = has_roles ? "roles.csv" : "",
                                     .nics_per_host = 2});
  if (!read) return refused(read.error());
  const std::uint32_t nics = std::max(1u, usual_nic_count(*read));
  if (nics > 64) return 0;
  const auto fabric = build_cabled_fabric(*read, {.host = host_preset("h100", 2, nics),
                                                  .rate = weft::Rate{400'000'000'000},
                                                  .latency = {},
                                                  .limits = {.nodes = 10'000, .links = 40'000}});
  if (!fabric) return refused(fabric.error());
  std::size_t loops = 0, links = 0;
  for (const Cabling::Cable& cable : read->cables) loops += cable.a.device == cable.b.device;
  for (const weft::model::LinkId link : fabric->links()) links += fabric->on_wire(link);
  WEFT_CHECK(links / 2 + loops == read->cables.size());
  return 0;
}
