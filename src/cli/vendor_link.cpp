#include "cli/vendor_link.hpp"

#include <fmt/format.h>

#include <utility>

#include "adapt/live/http_post.hpp"
#include "adapt/live/webhook.hpp"
#include "base/markup.hpp"

namespace weft::cli {
namespace {

namespace live = adapt::live;

constexpr std::size_t key_bytes_min = 32;

// That of webhooks, "t=SECONDS,v1=DIGITS", over another kind of text: neither passes for the other.
std::string signed_text(std::string_view id) { return fmt::format("vendor snapshot {}", id); }

}  // namespace

Result<std::string> read_vendor_key(const std::string& path) {
  WEFT_TRY(std::string secret, live::read_secret(path));
  if (secret.size() < key_bytes_min)
    return fail(Errc::value, {path, 0, 0},
                fmt::format("this key has {} characters; whoever has a link can guess a short one",
                            secret.size()),
                fmt::format("use {} or more: openssl rand -hex 32", key_bytes_min));
  return secret;
}

Result<VendorSettings> read_vendor_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "vendor", errors);
  VendorSettings out;
  const std::string path = reader.text("key_file", std::nullopt);
  if (auto secret = read_vendor_key(path))
    out.secret = *std::move(secret);
  else if (!path.empty())
    reader.error(secret.error().code, reader.where("key_file"), secret.error().text(),
                 secret.error().hint);
  if (const Config* redact = reader.child("redact"))
    out.redact = operate::snapshot::read_redact_settings(*redact, errors);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string vendor_link(std::string_view secret, std::string_view service, std::string_view id,
                        std::int64_t expires_s) {
  const std::string header = live::sign_body(secret, {expires_s * ns_per_s}, signed_text(id));
  while (service.ends_with('/')) service.remove_suffix(1);
  return fmt::format("{}/v1/vendor/snapshots/{}?expires={}&signature={}", service,
                     percent_encoded(id), expires_s, header.substr(header.find("v1=") + 3));
}

bool is_vendor_link(std::string_view secret, std::string_view id, std::int64_t expires_s,
                    std::string_view signature, Timestamp now) {
  const std::int64_t here = now.ns / ns_per_s;
  if (expires_s < here || expires_s > here + (vendor_days_max + 1) * 86'400) return false;
  const std::string header = fmt::format("t={},v1={}", expires_s, signature);
  return live::is_signed(header, secret, {expires_s * ns_per_s}, 0, signed_text(id));
}

}  // namespace weft::cli
