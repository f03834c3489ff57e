#include "adapt/live/scrape.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/text.hpp"

namespace weft::adapt::live {

namespace {

using Clock = std::chrono::steady_clock;

struct Url {
  bool is_tls = false;
  std::string host;  // without the brackets of IPv6
  std::string path = "/metrics";
  int port = 0;

  std::string origin() const {
    const bool is_six = host.find(':') != std::string::npos;
    return fmt::format("{}://{}:{}", is_tls ? "https" : "http", is_six ? "[" + host + "]" : host,
                       port);
  }
  bool is_loopback() const {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
  }
};

std::optional<Url> parse_url(std::string_view text) {
  Url out;
  out.is_tls = text.starts_with("https://");
  if (!out.is_tls && !text.starts_with("http://")) return std::nullopt;
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
  text.remove_prefix(out.is_tls ? 8 : 7);
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) out.path = text.substr(slash);
  std::string_view authority = text.substr(0, slash);
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!authority.empty() && !authority.starts_with(':')) return std::nullopt;
    port = authority;
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    out.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  out.port = out.is_tls ? 443 : 80;
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc{} || end != port.data() + port.size() || out.port < 1 ||
        out.port > 65'535)
      return std::nullopt;
  }
  // User names and passwords in a URL end up in logs: not taken.
  const bool is_host = !out.host.empty() && out.host.find('@') == std::string::npos;
  if (!is_plain || !is_host || text.size() > 2'048) return std::nullopt;
  return out;
}

Result<std::string> get(const Url& url, const std::string& shown, const ScrapeOptions& options) {
  httplib::Client client(url.origin());
  const Clock::time_point end = Clock::now() + options.timeout;
  client.set_connection_timeout(options.timeout);
  client.set_read_timeout(options.timeout);
  client.set_write_timeout(options.timeout);
  client.set_follow_location(false);
  client.set_keep_alive(false);
  if (url.is_tls) {
    client.enable_server_certificate_verification(true);
    if (!options.ca_file.empty()) client.set_ca_cert_path(options.ca_file.c_str());
  }
  httplib::Headers headers{{"Accept", "text/plain;version=0.0.4"}};
  if (!options.bearer_token.empty() && (url.is_tls || url.is_loopback()))
    headers.emplace("Authorization", "Bearer " + options.bearer_token);
  std::string body;
  int status = 0;
  bool is_long = false;
  std::atomic<bool> is_late = false;
  // The library's own timeouts are for each call of the system: against a trickle, also of header
  // lines, somebody has to close the connection.
  std::mutex mutex;
  std::condition_variable_any ended;
  const std::jthread watchdog([&](const std::stop_token& stop) {
    constexpr auto again = std::chrono::milliseconds(20);
    std::unique_lock lock(mutex);
    for (Clock::time_point at = end; !stop.stop_requested(); at = Clock::now() + again) {
      ended.wait_until(lock, stop, at, [] { return false; });
      if (stop.stop_requested()) return;
      is_late = true;
      client.stop();
    }
  });
  const auto result = client.Get(
      url.path, headers,
      [&](const httplib::Response& response) {
        status = response.status;
        return status == 200;
      },
      [&](const char* data, std::size_t size) {
        is_long = size > options.bytes_max - body.size();
        if (is_long || is_late) return false;
        body.append(data, size);
        return true;
      });
  const auto refuse = [&](std::string what, std::string hint) {
    return fail(Errc::io, {shown, 0, 0}, std::move(what), std::move(hint));
  };
  if (is_long)
    return refuse(fmt::format("more than {} bytes", options.bytes_max), "is this a metrics page?");
  if (is_late) return refuse("too slow", "allow more time or expose less");
  if (status != 0 && status != 200) return refuse(fmt::format("status {}", status), "");
  if (!result) return refuse("no answer: " + httplib::to_string(result.error()), "");
  return body;
}

}  // namespace

std::string host_of(const std::string& url) {
  const auto parts = parse_url(url);
  return parts ? parts->host : std::string();
}

Result<std::string> scrape(const std::string& url, const ScrapeOptions& options) {
  const auto parts = parse_url(url);
  if (!parts)
    return fail(Errc::value, {}, fmt::format("{} is no URL to scrape", base::quoted(url)),
                "write e.g. http://10.0.0.1:9100/metrics");
  try {
    return get(*parts, url, options);
  } catch (const std::exception& e) {
    return fail(Errc::io, {url, 0, 0}, fmt::format("no answer: {}", e.what()));
  }
}

}  // namespace weft::adapt::live
