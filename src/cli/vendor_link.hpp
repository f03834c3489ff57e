// Links by which a vendor may fetch the redacted copy of one snapshot, for some time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/config.hpp"
#include "base/timestamp.hpp"
#include "operate/snapshot/redact.hpp"

namespace weft::cli {

inline constexpr std::int64_t vendor_days_max = 90;

// The `vendor` section of weft serve: the secret that signs links, and how copies are redacted.
struct VendorSettings {
  std::string secret;
  operate::snapshot::RedactSettings redact;
};
// The secret of that file, of 32 characters or more. Fails: as read_secret(); Errc::value where it
// is shorter.
Result<std::string> read_vendor_key(const std::string& path);
// YAML: key_file, redact. Fails: every error found.
Result<VendorSettings> read_vendor_settings(const Config& config);

// "https://weft.example/v1/vendor/snapshots/ID?expires=...&signature=<64 hexadecimal digits>":
// HMAC-SHA256 of the time and the id.
std::string vendor_link(std::string_view secret, std::string_view service, std::string_view id,
                        std::int64_t expires_s);
// Whether such a signature is right, has not expired, and does so within vendor_days_max and a day.
// Takes equally long wherever it differs.
bool is_vendor_link(std::string_view secret, std::string_view id, std::int64_t expires_s,
                    std::string_view signature, Timestamp now);

}  // namespace weft::cli
