#include "adapt/live/scrape.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace weft::adapt::live {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t url_bytes_max = 2'048;

struct Url {
  HttpOrigin origin;
  std::string path = "/metrics";
};

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::size_t scheme_end = std::string_view("https://").size();
  const std::size_t slash = std::min(text.find('/', scheme_end), text.size());
  const auto origin = parse_origin(text.substr(0, slash));
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!origin || !is_plain || text.size() > url_bytes_max) return std::nullopt;
  Url out{.origin = *origin};
  if (slash < text.size()) out.path = text.substr(slash);
  return out;
}

Result<std::string> get(const Url& url, const std::string& shown, const ScrapeOptions& options) {
  const Clock::time_point end = Clock::now() + options.timeout;
  WEFT_TRY(HttpClient client, HttpClient::open(url.origin, options.tls, options.timeout));
  httplib::Headers headers{{"Accept", "text/plain;version=0.0.4"}};
  if (!options.bearer_token.empty() && (url.origin.is_tls() || url.origin.is_this_machine()))
    headers.emplace("Authorization", "Bearer " + options.bearer_token);
  std::string body;
  int status = 0;
  bool is_long = false;
  const Watchdog watchdog(client, end);
  const auto result = client.use([&](httplib::ClientImpl& http) {
    http.set_keep_alive(false);
    return http.Get(
        url.path, headers,
        [&](const httplib::Response& response) {
          status = response.status;
          return status == 200;
        },
        [&](const char* data, std::size_t size) {
          is_long = size > options.bytes_max - body.size();
          if (is_long || watchdog.has_acted()) return false;
          body.append(data, size);
          return true;
        });
  });
  const auto refuse = [&](std::string what, std::string hint) {
    return fail(Errc::io, {shown, 0, 0}, std::move(what), std::move(hint));
  };
  if (is_long)
    return refuse(fmt::format("more than {} bytes", options.bytes_max),
                  "check that this is a metrics page");
  // The library's own limits end at the same time, and may be the first.
  const bool is_late = watchdog.has_acted() || (!result && Clock::now() >= end);
  if (is_late) return refuse("too slow", "allow more time or expose fewer metrics");
  if (status != 0 && status != 200) return refuse(fmt::format("status {}", status), "");
  if (!result) return refuse("no answer: " + client.trouble(result.error()), "");
  return body;
}

}  // namespace

std::string host_of(const std::string& url) {
  const auto parts = parse_url(url);
  return parts ? parts->origin.host : std::string();
}

Result<std::string> scrape(const std::string& url, const ScrapeOptions& options) {
  const auto parts = parse_url(url);
  if (!parts)
    return fail(Errc::value, {}, fmt::format("{} is not a URL to scrape", quote(url)),
                "write e.g. http://10.0.0.1:9100/metrics");
  try {
    return get(*parts, url, options);
  } catch (const std::exception& e) {
    return fail(Errc::io, {url, 0, 0}, fmt::format("no answer: {}", e.what()));
  }
}

}  // namespace weft::adapt::live
