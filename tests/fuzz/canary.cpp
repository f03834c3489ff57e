// A fuzz target with two planted bugs, for a test that fails unless the fuzzer finds them: coverage
// of the rooms must lead it to a text that is a rate, and sanitizers must see what happens then.
// Built with WEFT_CANARY_OVERFLOW it overflows an integer, else it reads behind a buffer.
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "base/text.hpp"
#include "fuzz.hpp"

namespace {

volatile std::int64_t result = 0;  // keeps what is computed

void fail_on(std::int64_t bps) {
#ifdef WEFT_CANARY_OVERFLOW
  result = bps + (std::numeric_limits<std::int64_t>::max() - bps / 2);
#else
  const auto bytes = std::make_unique<unsigned char[]>(8);
  std::array<unsigned char, 16> copy{};
  std::memcpy(copy.data(), bytes.get(), bps > 0 ? 9 : 8);
  result = copy[8];
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rate = weft::parse_rate({weft::fuzz::text_of(data, size), {"canary", 1, 1}});
  if (rate && rate->bps > 1'000'000) fail_on(rate->bps);
  return 0;
}
