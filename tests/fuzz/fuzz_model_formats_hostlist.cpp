// expand_hostlist: no input crashes or swells, and compress_hostlist keeps every name.
#include <algorithm>

#include "fuzz.hpp"
#include "model/formats/hostlist.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most = 500;
  auto names = weft::model::expand_hostlist({weft::fuzz::text_of(data, size), {"f", 1, 1}}, most);
  if (!names) {
    WEFT_CHECK(!names.error().what.empty() && !names.error().hint.empty());
    return 0;
  }
  WEFT_CHECK(names->size() <= most);
  // Characters with a meaning in lists cannot survive one.
  for (const std::string& name : *names)
    if (name.find_first_of(" \t\r\n") != name.npos) return 0;
  auto back = weft::model::expand_hostlist({weft::model::compress_hostlist(*names), {}}, most);
  WEFT_CHECK(back.has_value());
  std::ranges::sort(*names);
  std::ranges::sort(*back);
  WEFT_CHECK(*back == *names);
  return 0;
}
