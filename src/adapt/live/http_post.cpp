#include "adapt/live/http_post.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>

#include "adapt/live/http_client.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t answer_bytes_max = 65'536;
constexpr std::size_t told_bytes_max = 200;
constexpr std::size_t secret_bytes_max = 16'384;

struct PostAnswer {
  int status = 0;  // 0: there was none
  std::string text;
  std::optional<Milliseconds> retry_after;
};

std::optional<Milliseconds> retry_after(const httplib::Response& response) {
  const auto seconds = parse_count({response.get_header_value("Retry-After"), {}});
  if (!seconds || *seconds < 0 || *seconds > 86'400) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

PostAnswer send_once(const HttpTarget& target, const std::string& method, Milliseconds timeout,
                     const std::string& body, const HttpHeaders& headers) {
  const auto origin = parse_origin(target.origin);
  if (!origin) return {.status = 0, .text = "no client for " + target.origin};
  auto client = HttpClient::open(*origin, {.ca = target.ca_file}, timeout);
  if (!client) return {.status = 0, .text = client.error().text()};
  PostAnswer out;
  httplib::Request request;
  request.method = method;
  request.path = target.path;
  request.body = body;
  for (const auto& [name, value] : headers) request.headers.emplace(name, value);
  if (!body.empty() && !request.has_header("Content-Type"))
    request.headers.emplace("Content-Type", "application/json");
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    out.text.append(data, std::min(size, answer_bytes_max - out.text.size()));
    return out.text.size() < answer_bytes_max;
  };
  const Watchdog watchdog(*client, Clock::now() + timeout);
  const auto result = client->use([&](httplib::ClientImpl& http) { return http.send(request); });
  if (!result) {
    out.text = client->trouble(result.error());
    return out;
  }
  out.status = result->status;
  out.retry_after = retry_after(*result);
  return out;
}

bool may_pass(int status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

std::string told(const PostAnswer& answer) {
  std::string text(trim(answer.text).substr(0, told_bytes_max));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return answer.status == 0 ? text : fmt::format("status {}: {}", answer.status, text);
}

Milliseconds read_span(Reader& reader, std::string_view key, Milliseconds fallback) {
  const Duration span = reader.duration(key, Duration{fallback.count() * ps_per_ms});
  if (span.ps >= ps_per_ms && span.ps <= 600'000 * ps_per_ms)
    return Milliseconds(span.ps / ps_per_ms);
  reader.error(Errc::value, reader.where(key), "a duration must be between 1 ms and 10 min");
  return fallback;
}

}  // namespace

Result<HttpTarget> parse_url(const Token& url, PlainHttp plain) {
  constexpr std::size_t scheme_end = std::string_view("https://").size();
  const std::size_t slash = std::min(url.text.find('/', scheme_end), url.text.size());
  const auto origin = parse_origin(url.text.substr(0, slash));
  const bool fine = std::ranges::all_of(
      url.text, [](char c) { return c > ' ' && static_cast<unsigned char>(c) < 127; });
  if (!origin || !fine)
    return fail(Errc::value, url.where, fmt::format("{} is not a URL to post to", quote(url.text)),
                "write https://host/path; passwords belong in files");
  if (plain == PlainHttp::local_only && !origin->is_tls() && !origin->is_this_machine())
    return fail(Errc::value, url.where, "plain HTTP is unencrypted",
                "use https, or set plain_http: anywhere");
  return HttpTarget{.origin = std::string(url.text.substr(0, slash)),
                    .path = slash == url.text.size() ? "/" : std::string(url.text.substr(slash)),
                    .ca_file = {}};
}

HttpSettings read_http_settings(Reader& reader) {
  HttpSettings out;
  const std::array<std::string, 2> plains{"local_only", "anywhere"};
  const auto plain = static_cast<PlainHttp>(reader.choice("plain_http", plains, 0));
  const std::string url = reader.text("url", std::nullopt);
  if (!url.empty()) {
    auto target = parse_url({url, reader.where("url")}, plain);
    if (target) {
      out.target = std::move(*target);
    } else {
      reader.error(std::move(target).error());
    }
  }
  out.target.ca_file = reader.text("ca_file", "");
  out.retry.tries = static_cast<std::uint32_t>(reader.count("tries", out.retry.tries, 1, 20));
  out.retry.timeout = read_span(reader, "timeout", out.retry.timeout);
  out.retry.backoff = read_span(reader, "backoff", out.retry.backoff);
  out.retry.patience = read_span(reader, "patience", out.retry.patience);
  return out;
}

Status post_json(const HttpTarget& target, const RetryPolicy& retry, const std::string& body,
                 const std::function<HttpHeaders()>& headers) {
  const auto deadline = Clock::now() + retry.patience;
  const auto left = [&] {
    return std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
  };
  Milliseconds pause = retry.backoff;
  PostAnswer answer{.status = 0, .text = "there was no time left to try"};
  for (std::uint32_t i = 0; i < retry.tries && left().count() > 0; ++i) {
    try {
      answer = send_once(target, "POST", std::min(retry.timeout, left()), body, headers());
    } catch (const std::exception& error) {
      answer = {.status = 0, .text = error.what()};
    }
    if (answer.status >= 200 && answer.status < 300) return {};
    if (!may_pass(answer.status))
      return fail(Errc::value, {}, fmt::format("{} refuses: {}", target.origin, told(answer)));
    const Milliseconds wait = std::max(pause, answer.retry_after.value_or(Milliseconds(0)));
    if (i + 1 == retry.tries || wait >= left()) break;
    std::this_thread::sleep_for(wait);
    pause *= 2;
  }
  return fail(Errc::io, {}, fmt::format("{} did not accept it: {}", target.origin, told(answer)));
}

Result<HttpAnswer> send_json(const HttpSettings& settings, const std::string& method,
                             const std::string& path, const std::string& body,
                             const HttpHeaders& headers) {
  HttpTarget target = settings.target;
  target.path = path;
  try {
    PostAnswer answer = send_once(target, method, settings.retry.timeout, body, headers);
    if (answer.status == 0)
      return fail(Errc::io, {}, fmt::format("{} does not answer: {}", target.origin, answer.text));
    return HttpAnswer{answer.status, std::move(answer.text)};
  } catch (const std::exception& error) {
    return fail(Errc::io, {}, error.what());
  }
}

Result<std::string> read_secret(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) == 0 && (found.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return fail(Errc::value, {path, 0, 0}, "this secret is readable by everyone",
                "run chmod 600 on it");
  WEFT_TRY(const std::string text, read_file(path, secret_bytes_max));
  const std::string_view secret = trim(text);
  if (secret.empty() || secret.find('\n') != std::string_view::npos)
    return fail(Errc::value, {path, 0, 0}, "a secret must be one non-empty line");
  return std::string(secret);
}

}  // namespace weft::adapt::live
