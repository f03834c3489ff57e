#include "serve/auth.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <utility>

#include "base/fd.hpp"
#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"
#include "os/digest.hpp"

namespace weft::serve {
namespace {

constexpr std::size_t digest_digits = 64;
constexpr std::size_t name_bytes_max = 64;
constexpr std::size_t entries_max = 10'000;
constexpr std::uint64_t file_limit = 4 << 20;
constexpr std::string_view by_certificate = "certificate", by_svid = "svid", of_tenant = "tenant=";
constexpr std::array<std::string_view, role_count> role_names{"read", "ingest", "operate"};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= name_bytes_max && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-@").find(c) != std::string_view::npos;
  });
}

bool is_digest(std::string_view text) {
  return text.size() == digest_digits &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

Result<Roles> parse_roles(std::string_view text, const Where& where) {
  Roles out;
  for (const std::string_view word : split(text, ',')) {
    const auto at = std::ranges::find(role_names, word);
    if (at == role_names.end())
      return fail(Errc::value, where, fmt::format("{} is not a role", quote(word)),
                  "use read, ingest and operate, separated by commas");
    out = out.with(static_cast<Role>(at - role_names.begin()));
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  line = line.substr(0, line.find('#'));
  while (!(line = trim(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

// Others than the owner and her group must not read it, and nobody but the owner may change it.
Status check_mode(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return fail(Errc::io, {path}, errno_text(errno));
  if ((info.st_mode & (S_IRWXO | S_IWGRP)) != 0)
    return fail(Errc::io, {path}, "this file of secrets can be read or changed by other users",
                fmt::format("chmod 600 {}", path));
  return {};
}

}  // namespace

std::string_view to_text(Role role) { return role_names[static_cast<std::size_t>(role)]; }

Result<Tokens> Tokens::load(const std::string& path) {
  WEFT_TRY_STATUS(check_mode(path));
  WEFT_TRY(const std::string text, read_file(path, file_limit));
  return parse(text, path);
}

Tokens::Entry Tokens::parse_entry(const std::vector<std::string_view>& words, const Where& where,
                                  Errors& errors) const {
  const auto wrong = [&](std::string what, std::string hint) {
    errors.push_back({Errc::parse, where, std::move(what), std::move(hint), {}});
  };
  const auto roles = parse_roles(words[1], where);
  if (!roles) errors.push_back(roles.error());
  const bool is_certificate = words[2] == by_certificate, is_svid = words[2] == by_svid;
  if (is_svid && !is_spiffe_id(words[0]))
    wrong(fmt::format("{} is not a SPIFFE ID", quote(words[0])), "write spiffe://DOMAIN/PATH");
  if (!is_svid && !is_name(words[0]))
    wrong(fmt::format("{} is not a valid name", quote(words[0])),
          "use up to 64 letters, digits and . _ - @");
  if (!is_certificate && !is_svid && !is_digest(words[2]))
    wrong("the third word is not a SHA-256", "write 64 hex digits: printf %s TOKEN | sha256sum");
  const std::string_view tenant =
      words.size() == 4 && words[3].starts_with(of_tenant) ? words[3].substr(of_tenant.size()) : "";
  if (words.size() == 4 && !is_name(tenant))
    wrong(fmt::format("{} does not name a tenant", quote(words[3])),
          "write tenant=NAME, with up to 64 letters, digits and . _ - @");
  Entry entry{{std::string(words[0]), roles.value_or(Roles()), std::string(tenant)},
              is_certificate || is_svid ? "" : lower_case(words[2]),
              is_svid};
  const auto is_same = [&](const Entry& other) {
    return other.digest == entry.digest && other.is_svid == entry.is_svid &&
           (!entry.digest.empty() || other.principal.name == entry.principal.name);
  };
  if (std::ranges::any_of(entries_, is_same))
    wrong("duplicate: already on an earlier line", "keep one of the two");
  return entry;
}

Result<Tokens> Tokens::parse(std::string_view text, const std::string& file) {
  Tokens out;
  Errors errors;
  LineReader lines(text, file);
  const auto wrong = [&](std::string what, std::string hint) {
    errors.push_back({Errc::parse, lines.where(), std::move(what), std::move(hint), {}});
  };
  while (lines.next() && errors.size() < 100) {
    const auto words = words_of(lines.line());
    if (words.empty()) continue;
    if (words.size() != 3 && words.size() != 4) {
      wrong(fmt::format("{} words, but three are required, or four", words.size()),
            "write NAME ROLE[,ROLE] SHA256-OF-THE-TOKEN [tenant=NAME]");
      continue;
    }
    Entry entry = out.parse_entry(words, lines.where(), errors);
    if (out.entries_.size() == entries_max) {
      wrong(fmt::format("more than {} entries", entries_max), "remove old entries");
      break;
    }
    out.entries_.push_back(std::move(entry));
  }
  if (const Error* error = lines.error()) errors.push_back(*error);
  if (errors.empty() && out.entries_.empty())
    errors.push_back(
        {Errc::value, {file}, "grants access to nobody", "add a line, or omit the file", {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::optional<Principal> Tokens::of_token(std::string_view token) const {
  const std::string digest = sha256_hex(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.digest.size() != digest.size()) continue;
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found == nullptr || token.empty()) return std::nullopt;
  return found->principal;
}

std::optional<Principal> Tokens::of_certificate(std::string_view common_name) const {
  for (const Entry& entry : entries_)
    if (entry.digest.empty() && !entry.is_svid && entry.principal.name == common_name)
      return entry.principal;
  return std::nullopt;
}

std::optional<Principal> Tokens::of_svid(std::string_view id) const {
  for (const Entry& entry : entries_)
    if (entry.is_svid && entry.principal.name == id) return entry.principal;
  return std::nullopt;
}

void Tokens::trust(JwtKeys keys, std::string audience) {
  keys_ = std::move(keys);
  audience_ = std::move(audience);
}

Result<Principal> Tokens::of_jwt(std::string_view token, Timestamp now) const {
  if (!keys_) return fail(Errc::unsupported, {}, "no keys of JWT-SVIDs are trusted");
  WEFT_TRY(const std::string id, keys_->verify(token, audience_, now));
  return of_svid(id).value_or(Principal{id, Roles(), {}});
}

bool Tokens::has_tokens() const {
  return keys_ ||
         std::ranges::any_of(entries_, [](const Entry& entry) { return !entry.digest.empty(); });
}

std::optional<std::string> token_of_header(std::string_view authorization) {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string scheme = lower_case(authorization.substr(0, space));
  const std::string_view rest = trim(authorization.substr(space));
  if (scheme == "bearer" && !rest.empty()) return std::string(rest);
  if (scheme != "basic") return std::nullopt;
  const auto pair = from_base64(rest);
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return pair->substr(colon + 1);
}

}  // namespace weft::serve
