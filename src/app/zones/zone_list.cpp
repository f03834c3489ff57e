#include "app/zones/zone_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.hpp"

namespace weft::app {
namespace {

constexpr std::size_t zones_max = 1'000, urls_max = 8;
constexpr std::int64_t ps_per_ms = 1'000'000'000;

bool is_zone_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-").find(c) != std::string_view::npos;
  });
}

// As open_service() takes it.
bool is_service(std::string_view url) {
  return (url.starts_with("unix:") && url.size() > 5) || adapt::live::parse_origin(url);
}

class ZoneReader {
 public:
  ZoneReader(const std::string& file, Errors& errors)
      : folder_(std::filesystem::path(file).parent_path()), errors_(errors) {}

  Zone read(const Config& config) {
    Reader reader(config, "zone", errors_);
    Zone out;
    out.name = reader.text("name", std::nullopt);
    if (!out.name.empty() && !is_zone_name(out.name))
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("{} is not a zone's name", quote(out.name)),
                   "use letters, digits, dots, dashes and underscores");
    if (!names_.insert(out.name).second)
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("there are two zones named {}", quote(out.name)));
    for (const Token& url : reader.texts("urls")) {
      if (!is_service(url.text))
        reader.error(Errc::parse, url.where, fmt::format("{} is not a service", quote(url.text)),
                     "write https://HOST[:PORT], http:// on this machine, or unix:PATH");
      out.urls.push_back(with_folder(std::string(url.text)));
    }
    if (out.urls.empty() || out.urls.size() > urls_max)
      reader.error(Errc::value, reader.where("urls"),
                   fmt::format("a zone has 1 to {} urls: its service, and its standby", urls_max));
    out.console = reader.text("console", out.urls.empty() ? "" : out.urls.front());
    out.token = path(reader, "token");
    out.tls = {path(reader, "ca"), path(reader, "cert"), path(reader, "key")};
    reader.finish();
    return out;
  }

 private:
  std::string path(Reader& reader, const std::string& key) const {
    const std::string given = reader.text(key, "");
    return given.empty() ? given : (folder_ / given).string();
  }
  std::string with_folder(const std::string& url) const {
    constexpr std::string_view scheme = "unix:";
    if (!url.starts_with(scheme)) return url;
    return fmt::format("{}{}", scheme, (folder_ / url.substr(scheme.size())).string());
  }

  std::filesystem::path folder_;
  Errors& errors_;
  std::set<std::string> names_;
};

std::chrono::milliseconds time_of(Reader& reader, const std::string& key,
                                  std::chrono::milliseconds fallback) {
  const Duration given = reader.duration(key, Duration{fallback.count() * ps_per_ms});
  if (given.ps < 100 * ps_per_ms || given.ps > 3'600'000 * ps_per_ms)
    reader.error(Errc::value, reader.where(key), fmt::format("{} must be 100 ms to 1 h", key));
  return std::chrono::milliseconds(given.ps / ps_per_ms);
}

}  // namespace

Result<ZoneList> read_zone_list(const Config& config, const std::string& file) {
  Errors errors;
  Reader reader(config, "zone list", errors);
  ZoneList out;
  out.every = time_of(reader, "every", out.every);
  out.timeout = time_of(reader, "timeout", out.timeout);
  const Config* const zones = reader.child("zones");
  if (zones == nullptr || zones->kind != Config::Kind::list || zones->items.empty() ||
      zones->items.size() > zones_max) {
    reader.error(Errc::value, zones == nullptr ? reader.where() : zones->where,
                 fmt::format("zones must be a list of 1 to {}", zones_max),
                 "e.g. zones: [{name: zone1, urls: [\"https://weft.zone1.example\"]}]");
  } else {
    ZoneReader each(file, errors);
    for (const Config& zone : zones->items) out.zones.push_back(each.read(zone));
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::app
