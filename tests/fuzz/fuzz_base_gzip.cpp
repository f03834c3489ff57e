// gunzip: no input crashes or outgrows its limit; gzip then gunzip gives the input back.
#include "base/file.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t limit = 1 << 20;
  const std::string_view input = weft::fuzz::text_of(data, size);
  const auto unpacked = weft::gunzip(input, "fuzz.gz", limit);
  WEFT_CHECK(unpacked ? unpacked->size() <= limit : !unpacked.error().hint.empty());
  const auto packed = weft::gzip(input);
  WEFT_CHECK(packed.has_value());
  const auto again = weft::gunzip(*packed, "again.gz", limit);
  WEFT_CHECK(again ? *again == input : size > limit);
  return 0;
}
