// Addresses to listen at: no text crashes, what is read writes back to the same, what is not says
// what to do.
#include "adapt/live/syslog_address.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto address =
      weft::adapt::live::parse_syslog_address({weft::fuzz::text_of(data, size), {}});
  if (!address) {
    WEFT_CHECK(!address.error().hint.empty());
    return 0;
  }
  const std::string text = to_text(*address);
  WEFT_CHECK(weft::adapt::live::parse_syslog_address({text, {}}) == *address);
  return 0;
}
