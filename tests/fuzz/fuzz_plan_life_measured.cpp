// Measured: no text in the place of a command's JSON crashes it; what it takes is in range.
#include "fuzz.hpp"
#include "plan/life/measured.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto asked = weft::parse_yaml(
      "{step: {run: f, job: llama3, healthy: base, faulty: one down}, "
      "stall: {run: f, job: llama3, variant: base, figure: checkpoint_stall_s}, "
      "whole: {rehearse: f, problem: cable}, "
      "parts: {rehearse: f, problem: cable, parts: [detect, drain]}}",
      "fuzz.yaml");
  weft::Errors errors;
  weft::plan::life::Measured measured(
      [&](const std::string&) { return std::string(weft::fuzz::text_of(data, size)); }, errors);
  const auto factor = measured.step_factor(*asked->find("step"));
  WEFT_CHECK(!factor || (*factor >= 1 && *factor <= 1000));
  for (const char* key : {"stall", "whole", "parts"}) {
    const auto seconds = measured.seconds(*asked->find(key));
    WEFT_CHECK(!seconds || *seconds >= 0);
  }
  for (const weft::Error& error : errors) WEFT_CHECK(!error.what.empty());
  return 0;
}
