// The entry point that libFuzzer and the replay driver call, and the check that fuzz targets use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weft::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace weft::fuzz
