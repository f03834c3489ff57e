// ASTRA-sim system files: no input crashes; what is accepted can be told.
#include "fuzz.hpp"
#include "workload/trace/astra_system.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto system =
      weft::workload::read_astra_system(weft::fuzz::text_of(data, size), "fuzz.json");
  if (!system) {
    WEFT_CHECK(!system.error().what.empty() && !system.error().hint.empty());
    return 0;
  }
  for (const std::string& note : to_notes(*system)) WEFT_CHECK(!note.empty());
  for (const auto& implementation : system->implementations)
    WEFT_CHECK(!implementation.algorithm.empty());
  return 0;
}
