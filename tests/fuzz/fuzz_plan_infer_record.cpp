// Records of vLLM runs: no input crashes, and what is accepted is a map of the section's keys.
#include "fuzz.hpp"
#include "plan/infer/inference_config.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto out = weft::plan::read_run_record(weft::fuzz::text_of(data, size), "fuzz.json");
  if (!out) {
    WEFT_CHECK(!out.error().what.empty());
    return 0;
  }
  for (const auto& field : out->fields)
    WEFT_CHECK(field.key == "engine" || field.key == "model" || field.key == "parallel");
  return 0;
}
