#include "adapt/gnmi/target_file.hpp"

#include <fmt/format.h>

#include <array>

#include "base/csv.hpp"
#include "base/file.hpp"

namespace weft::adapt::gnmi {
namespace {

enum Column : std::size_t {
  device,
  address,
  security,
  ca,
  certificate,
  key,
  server_name,
  username,
  password_file,
  database,
};

Result<std::string> file_in(const Token& name) {
  constexpr std::uint64_t bytes_max = 1 << 20;
  if (name.text.empty()) return std::string();
  auto text = read_file(std::string(name.text), bytes_max);
  if (!text) text.error().where = name.where;
  return text;
}

Result<Target> read_target(const CsvReader& csv) {
  Target out;
  const auto text = [&](Column column) { return std::string(trim(csv.cell(column).text)); };
  out.device = text(device);
  out.address = text(address);
  out.server_name = text(server_name);
  out.username = text(username);
  out.database = text(database);
  const std::string kind = text(security);
  if (kind == "plain")
    out.security = Security::plain;
  else if (!kind.empty() && kind != "tls")
    return fail(Errc::value, csv.cell(security).where,
                fmt::format("{} is not a security setting", quote(kind)), "use tls or plain");
  WEFT_TRY(out.ca, file_in(csv.cell(ca)));
  WEFT_TRY(out.certificate, file_in(csv.cell(certificate)));
  WEFT_TRY(out.key, file_in(csv.cell(key)));
  WEFT_TRY(const std::string password, file_in(csv.cell(password_file)));
  out.password = password.substr(0, password.find_first_of("\r\n"));
  return out;
}

}  // namespace

Result<std::vector<Target>> read_targets(std::string_view text, const std::string& file) {
  const std::array<std::string, 2> required{"device", "address"};
  const std::array<std::string, 8> optional{"security",    "ca",       "certificate",   "key",
                                            "server_name", "username", "password_file", "database"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, optional));
  std::vector<Target> out;
  Errors errors;
  while (csv.next()) {
    if (auto target = read_target(csv))
      out.push_back(std::move(*target));
    else
      errors.push_back(std::move(target).error());
    if (out.size() + errors.size() > targets_max)
      return fail(Errc::value, csv.where(), fmt::format("more than {} targets", targets_max),
                  "split them among several processes");
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::adapt::gnmi
