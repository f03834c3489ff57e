#include "adapt/snmp/credentials.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/csv.hpp"

namespace weft::adapt::snmp {

namespace {

constexpr std::size_t password_least = 8, password_most = 256;
constexpr std::array<std::string_view, 2> versions{"2c", "3"};
constexpr std::array<std::string_view, 5> auths{"none", "md5", "sha", "sha256", "sha512"};
constexpr std::array<std::string_view, 3> privs{"none", "des", "aes"};

template <class Enum, std::size_t n>
void choose(const Token& token, const std::array<std::string_view, n>& names, Enum& out,
            Errors& errors) {
  const std::string_view text = trim(token.text);
  if (text.empty()) return;
  const auto at = std::ranges::find(names, text);
  if (at != names.end())
    out = static_cast<Enum>(at - names.begin());
  else
    errors.push_back({Errc::value,
                      token.where,
                      fmt::format("unknown value {}", quote(text)),
                      fmt::format("write one of: {}", fmt::join(names, ", ")),
                      {}});
}

Target read_row(const CsvReader& csv, Errors& errors) {
  Target out;
  out.device = trim(csv.cell(0).text);
  out.agent.address = trim(csv.cell(1).text);
  if (const Token port = csv.cell(2); !trim(port.text).empty()) {
    const auto number = parse_count(port);
    if (number && *number > 0 && *number <= UINT16_MAX)
      out.agent.port = static_cast<std::uint16_t>(*number);
    else
      errors.push_back({Errc::value, port.where, "no port number", "write 1 to 65535", {}});
  }
  Credentials& who = out.credentials;
  choose(csv.cell(3), versions, who.version, errors);
  who.community = csv.cell(4).text;
  who.user = csv.cell(5).text;
  choose(csv.cell(6), auths, who.auth, errors);
  who.auth_password = csv.cell(7).text;
  choose(csv.cell(8), privs, who.priv, errors);
  who.priv_password = csv.cell(9).text;
  return out;
}

}  // namespace

Result<Credentials> read_user(const Token& user, const Token& auth, const Token& auth_password,
                              const Token& priv, const Token& priv_password) {
  Errors errors;
  Credentials out;
  out.version = Credentials::Version::v3;
  out.user = user.text;
  choose(auth, auths, out.auth, errors);
  out.auth_password = auth_password.text;
  choose(priv, privs, out.priv, errors);
  out.priv_password = priv_password.text;
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY_STATUS(check(out, user.where));
  return out;
}

Status check(const Endpoint& endpoint, const Where& where) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, endpoint.address.c_str(), &four) == 1 ||
      inet_pton(AF_INET6, endpoint.address.c_str(), &six) == 1)
    return {};
  return fail(Errc::value, where, fmt::format("{} is not an address", quote(endpoint.address)),
              "write an IPv4 or IPv6 address; names are not looked up");
}

Status check(const Credentials& who, const Where& where) {
  using Auth = Credentials::Auth;
  using Priv = Credentials::Priv;
  if (who.version == Credentials::Version::v2c) {
    if (!who.community.empty()) return {};
    return fail(Errc::value, where, "no community", "SNMP v2c needs one");
  }
  if (who.user.empty() || who.user.size() > 32)
    return fail(Errc::value, where, "the user must have 1 to 32 bytes", "SNMP v3 needs one");
  if (who.priv != Priv::none && who.auth == Auth::none)
    return fail(Errc::value, where, "privacy without authentication",
                "SNMP v3 does not allow it: set \"auth\" too");
  const auto is_fit = [](const std::string& password) {
    return password.size() >= password_least && password.size() <= password_most;
  };
  if ((who.auth != Auth::none && !is_fit(who.auth_password)) ||
      (who.priv != Priv::none && !is_fit(who.priv_password)))
    return fail(Errc::value, where, "password shorter than 8 or longer than 256 bytes",
                "RFC 3414 requires at least 8");
  return {};
}

Result<std::vector<Target>> read_targets(std::string_view text, const std::string& file) {
  const std::vector<std::string> required{"device", "address"};
  const std::vector<std::string> optional{"port", "version",       "community", "user",
                                          "auth", "auth_password", "priv",      "priv_password"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, optional));
  Errors errors;
  std::vector<Target> out;
  std::set<std::string, std::less<>> names;
  while (errors.size() < errors_max && csv.next()) {
    const std::size_t before = errors.size();
    Target target = read_row(csv, errors);
    if (errors.size() != before) continue;
    Status good = check(target.agent, csv.cell(1).where);
    if (good) good = check(target.credentials, csv.where());
    if (good && (target.device.empty() || !names.insert(target.device).second))
      good = fail(Errc::value, csv.cell(0).where,
                  target.device.empty() ? std::string("no device")
                                        : fmt::format("duplicate device {}", quote(target.device)),
                  "use one line per device");
    if (good)
      out.push_back(std::move(target));
    else
      errors.push_back(std::move(good).error());
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.empty()) return fail(Errc::value, {file, 0, 0}, "no device", "add at least one line");
  return out;
}

}  // namespace weft::adapt::snmp
