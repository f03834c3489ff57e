// read_policy: no input crashes, and what is refused is told with its place.
#include "base/config.hpp"
#include "fuzz.hpp"
#include "operate/repair/policy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto policy = weft::operate::repair::read_policy(*config);
  if (!policy) {
    WEFT_CHECK(!policy.error().what.empty());
    return 0;
  }
  for (const auto& problem : policy->problems)
    WEFT_CHECK(problem.confidence >= 0 && problem.confidence <= 1 && problem.packets > 0);
  for (const auto& freeze : policy->freezes) WEFT_CHECK(freeze.from < freeze.until);
  return 0;
}
