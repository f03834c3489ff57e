// SHA-256 and base64.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weft {
inline namespace os {

// SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// Of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // As sha256_hex() of all that was added; nothing may be added after it.
  std::string hex();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;  // EVP_MD_CTX
};
// The same in base64, as content security policies name scripts.
std::string sha256_base64(std::string_view bytes);

// The bytes that a padded base64 text of 4 to 4,096 characters stands for; none for any other text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace os
}  // namespace weft
