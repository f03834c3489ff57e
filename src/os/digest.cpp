#include "os/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>

#include "base/check.hpp"

namespace weft {
inline namespace os {
namespace {

constexpr std::size_t base64_text_max = 4'096;

using Digest256 = std::array<unsigned char, 32>;

Digest256 sha256(std::string_view bytes) {
  Digest256 out{};
  WEFT_CHECK(EVP_Digest(bytes.data(), bytes.size(), out.data(), nullptr, EVP_sha256(), nullptr) ==
             1);
  return out;
}

std::string hex_of(const Digest256& digest) {
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

EVP_MD_CTX* of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

std::string sha256_hex(std::string_view bytes) { return hex_of(sha256(bytes)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  WEFT_CHECK(EVP_DigestInit_ex(of(context_.get()), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  WEFT_CHECK(EVP_DigestUpdate(of(context_.get()), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  Digest256 out{};
  WEFT_CHECK(EVP_DigestFinal_ex(of(context_.get()), out.data(), nullptr) == 1);
  return hex_of(out);
}

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(of(context)); }

std::string sha256_base64(std::string_view bytes) {
  const Digest256 digest = sha256(bytes);
  std::array<unsigned char, (digest.size() + 2) / 3 * 4 + 1> out{};  // OpenSSL ends it with a NUL
  const int size = EVP_EncodeBlock(out.data(), digest.data(), static_cast<int>(digest.size()));
  return {out.begin(), out.begin() + size};
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > base64_text_max) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const auto padding = static_cast<std::size_t>(text.ends_with("==") ? 2 : text.ends_with('='));
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

}  // namespace os
}  // namespace weft
