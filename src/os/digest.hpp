// SHA-256 and base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft {
inline namespace os {

// SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// The same in base64, as content security policies name scripts.
std::string sha256_base64(std::string_view bytes);

// The bytes that a padded base64 text of 4 to 4,096 characters stands for; none for any other text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace os
}  // namespace weft
