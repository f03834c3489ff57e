#include "adapt/devices/device_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "adapt/live/http_client.hpp"
#include "adapt/live/http_post.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"

namespace weft::adapt::devices {
namespace {

constexpr std::uint64_t file_bytes_max = 16 << 20;
constexpr std::array<std::string_view, 3> needed{"device", "dialect", "address"};
// Each with the transports that use it.
struct Column {
  std::string_view name;
  std::vector<Transport> of;
};
const std::vector<Column>& columns() {
  using enum Transport;
  static const std::vector<Column> all{{"security", {eapi, nxapi, gnmi}},
                                       {"ca", {eapi, nxapi, gnmi}},
                                       {"certificate", {gnmi}},
                                       {"key", {ssh, gnmi}},
                                       {"server_name", {gnmi}},
                                       {"username", {ssh, eapi, nxapi, gnmi}},
                                       {"password_file", {eapi, nxapi, gnmi}},
                                       {"database", {gnmi}},
                                       {"known_hosts", {ssh}}};
  return all;
}

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && text.front() != '-' && text.size() <= 255 &&
         std::ranges::all_of(text, [&](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  also.contains(c);
         });
}

// The cells of one line, taken apart; errors are collected.
class Row {
 public:
  Row(const CsvReader& csv, Errors& errors) : csv_(csv), errors_(errors) {}

  Device read() {
    Device out{.name = text("device"), .where = csv_.where()};
    if (out.name.empty())
      refuse("device", "this line has no device", "give its name in the fabric");
    const auto dialect = find_dialect({trim(cell("dialect").text), cell("dialect").where});
    if (!dialect) {
      errors_.push_back(dialect.error());
      return out;
    }
    out.dialect = *dialect;
    for (const Column& column : columns())
      if (!text(column.name).empty() &&
          std::ranges::find(column.of, out.dialect->transport) == column.of.end())
        refuse(column.name,
               fmt::format("{} of dialect {} makes no use of {}", out.name, out.dialect->name,
                           column.name),
               "leave the cell empty");
    out.address = text("address");
    out.username = text("username");
    out.server_name = text("server_name");
    out.database = text("database");
    read_security(out);
    for (const auto& [column, path] : {std::pair{"key", &out.key},
                                       {"certificate", &out.certificate},
                                       {"ca", &out.ca},
                                       {"known_hosts", &out.known_hosts}}) {
      *path = text(column);
      if (!path->empty() && ::access(path->c_str(), R_OK) != 0)
        refuse(column, fmt::format("{} cannot be read", quote(*path)), "check path and owner");
    }
    check_address(out);
    read_password(out);
    return out;
  }

 private:
  Token cell(std::string_view name) const {
    const auto at = std::ranges::find(needed, name);
    if (at != needed.end()) return csv_.cell(static_cast<std::size_t>(at - needed.begin()));
    const auto other = std::ranges::find(columns(), name, &Column::name);
    return csv_.cell(needed.size() + static_cast<std::size_t>(other - columns().begin()));
  }
  std::string text(std::string_view name) const { return std::string(trim(cell(name).text)); }
  void refuse(std::string_view column, std::string what, std::string hint) {
    errors_.push_back({Errc::value, cell(column).where, std::move(what), std::move(hint), {}});
  }

  void read_security(Device& out) {
    const std::string kind = text("security");
    out.is_plain = kind == "plain";
    if (!out.is_plain && !kind.empty() && kind != "tls")
      refuse("security", fmt::format("{} is not a security setting", quote(kind)),
             "use tls or plain");
  }

  void check_address(const Device& out) {
    const auto url = live::parse_origin("http://" + out.address);
    if (!url || !is_word(out.address, ".-_:[]"))
      refuse("address", fmt::format("{} is not an address", quote(out.address)),
             "write HOST or HOST:PORT");
    else if (out.is_plain && out.dialect->transport != Transport::gnmi && !url->is_this_machine())
      refuse("security", "a password would be sent without TLS", "use tls, the default");
    if (!out.username.empty() && !is_word(out.username, "._-@"))
      refuse("username", fmt::format("{} is not a user name", quote(out.username)),
             "use letters, digits and ._-@");
  }

  void read_password(Device& out) {
    const std::string file = text("password_file");
    const Transport by = out.dialect->transport;
    const bool is_needed = by == Transport::eapi || by == Transport::nxapi;
    if (is_needed && (file.empty() || out.username.empty()))
      refuse("username", fmt::format("{} has no user, or no password", out.name),
             "set username and password_file");
    if (file.empty()) return;
    auto secret = live::read_secret(file);
    if (secret) {
      out.password = *std::move(secret);
    } else {
      secret.error().where = cell("password_file").where;
      secret.error().what = fmt::format("{}: {}", file, secret.error().what);
      errors_.push_back(std::move(secret).error());
    }
  }

  const CsvReader& csv_;
  Errors& errors_;
};

std::chrono::milliseconds span(Reader& reader, std::string_view key,
                               std::chrono::milliseconds fallback, std::int64_t least_ms) {
  const Duration out = reader.duration(key, Duration{fallback.count() * ps_per_ms});
  if (out.ps < least_ms * ps_per_ms || out.ps > 30'000 * ps_per_ms)
    reader.error(Errc::value, reader.where(key),
                 fmt::format("{} must be between {} ms and 30 s", key, least_ms));
  return std::chrono::milliseconds(out.ps / ps_per_ms);
}

}  // namespace

Result<std::vector<Device>> read_devices(std::string_view text, const std::string& file) {
  std::vector<std::string> optional;
  for (const Column& column : columns()) optional.emplace_back(column.name);
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(std::vector<std::string>(needed.begin(), needed.end()), optional));
  std::vector<Device> out;
  std::set<std::string> names;
  Errors errors;
  while (csv.next() && errors.size() < errors_max) {
    out.push_back(Row(csv, errors).read());
    if (!names.insert(out.back().name).second)
      errors.push_back({Errc::value,
                        csv.where(),
                        fmt::format("duplicate device {}", quote(out.back().name)),
                        "list each device once",
                        {}});
    if (out.size() > devices_max)
      return fail(Errc::value, csv.where(), fmt::format("more than {} devices", devices_max));
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<Settings> read_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "actuator", errors);
  Settings out;
  const std::string file = reader.text("switches", {});
  out.dry_run = reader.flag("dry_run", true);
  out.timeout = span(reader, "timeout", out.timeout, 100);
  out.settle = span(reader, "settle", out.settle, 500);
  out.ssh = reader.text("ssh", out.ssh);
  if (out.ssh.find('/') == std::string::npos)
    reader.error(Errc::value, reader.where("ssh"), "ssh must be the path of a program",
                 "PATH is not used");
  reader.finish();
  if (errors.empty()) {
    auto text = read_file(file, file_bytes_max);
    if (!text) text.error().where = reader.where("switches");
    auto devices = text ? read_devices(*text, file) : std::unexpected(text.error());
    if (devices)
      out.devices = *std::move(devices);
    else
      errors.push_back(std::move(devices).error());
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::adapt::devices
