// ASTRA-sim network files: no input crashes, and every NPU of an accepted network has a NIC.
#include "fuzz.hpp"
#include "model/formats/astra_network.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  // A million NPUs are allowed, but not worth an input's time here.
  std::size_t digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 2) return 0;
  }
  const auto fabric = weft::model::read_astra_network(text, "fuzz.yml");
  if (!fabric) {
    WEFT_CHECK(!fabric.error().what.empty());
    return 0;
  }
  WEFT_CHECK(!fabric->gpus().empty());
  for (const weft::model::NodeId gpu : fabric->gpus()) WEFT_CHECK(fabric->nic_of(gpu).valid());
  return 0;
}
