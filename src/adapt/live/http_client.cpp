#include "adapt/live/http_client.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "base/json_line.hpp"
#include "base/text.hpp"
#include "os/tls.hpp"

namespace weft::adapt::live {
namespace {

constexpr std::string_view plain_mark = "http://", tls_mark = "https://";
constexpr int plain_port = 80, tls_port = 443, port_max = 65'535;

sigset_t broken_pipe() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGPIPE);
  return out;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// OpenSSL itself compares the name then, as part of verifying.
bool expect_host(SSL_CTX* context, const std::string& host) {
  X509_VERIFY_PARAM* const wanted = SSL_CTX_get0_param(context);
  if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size()) == 1;
}

Status show_own(SSL_CTX* context, const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty())
    return fail(Errc::value, {files.certificate + files.key, 0, 0},
                "a certificate and its key are both required", "set both");
  if (files.certificate.empty()) return {};
  return use_certificate(context, files.certificate, files.key);
}

// What a service answered instead of 200.
std::unexpected<Error> refusal(int status, const std::string& text) {
  const auto problem = JsonLine::parse(text, {});
  const std::string why = problem ? problem->node().member("detail").text().value_or("") : "";
  return fail(status == 404                    ? Errc::unknown
              : status == 429 || status >= 500 ? Errc::io
                                               : Errc::value,
              {}, fmt::format("the service answers {}{}{}", status, why.empty() ? "" : ": ", why));
}

}  // namespace

bool HttpOrigin::is_this_machine() const {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") &&
          host.find_first_not_of("0123456789.") == std::string_view::npos);
}

std::optional<HttpOrigin> parse_origin(std::string_view text) {
  HttpOrigin out;
  const bool is_tls = text.starts_with(tls_mark);
  if (!is_tls && !text.starts_with(plain_mark)) return std::nullopt;
  out.scheme = is_tls ? HttpOrigin::Scheme::https : HttpOrigin::Scheme::http;
  text.remove_prefix(is_tls ? tls_mark.size() : plain_mark.size());
  const bool is_six = text.starts_with('[');
  const std::size_t end = is_six ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return std::nullopt;
  out.host = text.substr(is_six ? 1 : 0, end - (is_six ? 1 : 0));
  std::string_view port = text.substr(end + (is_six ? 1 : 0));
  out.port = is_tls ? tls_port : plain_port;
  if (!port.empty()) {
    if (!port.starts_with(':')) return std::nullopt;
    port.remove_prefix(1);
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc{} || stop != port.data() + port.size() || out.port < 1 ||
        out.port > port_max)
      return std::nullopt;
  }
  // User names and passwords in a URL end up in logs: not taken.
  const bool is_plain = std::ranges::all_of(out.host, [](char c) { return c > ' ' && c < '\x7f'; });
  if (out.host.empty() || !is_plain || out.host.find_first_of("/?#@[]") != std::string::npos)
    return std::nullopt;
  return out;
}

QuietPipes::QuietPipes() {
  const sigset_t pipe = broken_pipe();
  sigset_t pending{};
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

QuietPipes::~QuietPipes() {
  const sigset_t pipe = broken_pipe();
  constexpr timespec at_once{};
  while (!was_pending_ && ::sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

HttpClient::HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;

HttpClient& HttpClient::operator=(HttpClient&& other) noexcept {
  const QuietPipes quiet;  // the connection of before says goodbye
  client_ = std::move(other.client_);
  is_tls_ = other.is_tls_;
  return *this;
}

HttpClient::~HttpClient() {
  const QuietPipes quiet;
  client_.reset();
}

void HttpClient::set_up(std::chrono::milliseconds timeout) {
  client_->set_connection_timeout(timeout);
  client_->set_read_timeout(timeout);
  client_->set_write_timeout(timeout);
  client_->set_follow_location(false);
}

Status HttpClient::set_up_tls(const HttpOrigin& origin, const TlsFiles& files) {
  auto own = std::make_unique<httplib::SSLClient>(origin.host, origin.port);
  SSL_CTX* const context = own->ssl_context();
  forget_errors();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      !expect_host(context, origin.host))
    return fail(Errc::value, {origin.host}, "no TLS: " + take_tls_reason(),
                "check whether this is a valid name or address");
  own->enable_server_certificate_verification(true);
  if (!files.ca.empty()) {
    WEFT_TRY_STATUS(trust_authorities(context, files.ca));
    own->set_ca_cert_path(files.ca);  // else it would trust the system's as well
  }
  WEFT_TRY_STATUS(show_own(context, files));
  client_ = std::move(own);
  is_tls_ = true;
  return {};
}

Result<HttpClient> HttpClient::open(const HttpOrigin& origin, const TlsFiles& files,
                                    std::chrono::milliseconds timeout) {
  HttpClient out;
  if (origin.is_tls())
    WEFT_TRY_STATUS(out.set_up_tls(origin, files));
  else
    out.client_ = std::make_unique<httplib::ClientImpl>(origin.host, origin.port);
  out.set_up(timeout);
  return out;
}

HttpClient HttpClient::open_local(const std::string& path, std::chrono::milliseconds timeout) {
  HttpClient out;
  out.client_ = std::make_unique<httplib::ClientImpl>(path, plain_port);
  out.client_->set_address_family(AF_UNIX);
  out.set_up(timeout);
  return out;
}

void HttpClient::forget_errors() { ERR_clear_error(); }

void HttpClient::stop() {
  const QuietPipes quiet;
  client_->stop();
}

std::string HttpClient::trouble(httplib::Error error) const {
  std::string out = httplib::to_string(error);
  if (error == httplib::Error::Connection)
    out = "it cannot be reached, or nothing is listening there";
  if (error == httplib::Error::Read && !is_tls_)
    out = "it closed the connection or did not respond in time";
  if (!is_tls_) return out;
  if (error == httplib::Error::SSLServerVerification) {
    const long why = static_cast<const httplib::SSLClient&>(*client_).get_openssl_verify_result();
    return fmt::format("its certificate is not trusted: {}",
                       why == X509_V_OK ? "its certificate is for another name"
                                        : X509_verify_cert_error_string(why));
  }
  const std::string reason = take_tls_reason();
  if (!reason.empty()) return fmt::format("{}: {}", out, reason);
  // TLS 1.3 tells a client only after its handshake, and not everybody stays to hear it.
  if (error == httplib::Error::Read || error == httplib::Error::Write)
    out += ": it closed the connection; it may require a client certificate, or a different one";
  return out;
}

Watchdog::Watchdog(HttpClient& client, std::chrono::steady_clock::time_point end)
    : thread_([this, &client, end](const std::stop_token& stop) {
        constexpr auto again = std::chrono::milliseconds(20);
        std::unique_lock lock(mutex_);
        // Again and again, for it may just be between two connections.
        for (auto at = end; !stop.stop_requested(); at = std::chrono::steady_clock::now() + again) {
          changed_.wait_until(lock, stop, at, [] { return false; });
          if (stop.stop_requested()) return;
          has_acted_ = true;
          client.stop();
        }
      }) {}

Result<HttpClient> open_service(const ServiceUrl& service, const TlsFiles& files,
                                std::chrono::milliseconds timeout) {
  constexpr std::string_view unix_mark = "unix:";
  const auto refuse = [&](Errc code, std::string what) {
    return fail(code, {service.option, 0, 0}, std::move(what),
                "write https://HOST[:PORT], http://127.0.0.1:PORT or unix:/PATH");
  };
  if (service.url.starts_with(unix_mark)) {
    const std::string path = service.url.substr(unix_mark.size());
    if (path.empty()) return refuse(Errc::parse, "a socket needs a path");
    return HttpClient::open_local(path, timeout);
  }
  const auto origin = parse_origin(service.url);
  if (!origin)
    return refuse(Errc::parse, quote(service.url) + " is not just https, a host and a port");
  if (!origin->is_tls() && !origin->is_this_machine())
    return refuse(Errc::value, "without TLS the token could be read on the network");
  return HttpClient::open(*origin, files, timeout);
}

namespace {

struct Exchange {
  std::string_view method;
  const std::string &path, &token;
  std::string body, type;  // of what is sent
  TokenScheme scheme = TokenScheme::bearer;
};

Result<std::string> exchange(HttpClient& client, const Exchange& of,
                             std::chrono::milliseconds timeout) {
  constexpr std::size_t bytes_max = std::size_t{64} << 20;
  httplib::Request request;
  request.method = of.method;
  request.path = of.path;
  const std::string word = of.scheme == TokenScheme::token ? "Token " : "Bearer ";
  if (!of.token.empty()) request.headers.emplace("Authorization", word + of.token);
  if (!of.type.empty()) request.headers.emplace("Content-Type", of.type);
  request.body = of.body;
  std::string text;
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    text.append(data, size);
    return text.size() <= bytes_max;
  };
  const Watchdog watchdog(client, std::chrono::steady_clock::now() + timeout);
  const auto answer = client.use([&](httplib::ClientImpl& http) {
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);  // head and body are two packets: the second would wait
    return http.send(request);
  });
  if (!answer)
    return fail(Errc::io, {}, "the service does not answer: " + client.trouble(answer.error()));
  if (answer->status == 200) return text;
  return refusal(answer->status, text);
}

}  // namespace

Result<std::string> get_text(HttpClient& client, const std::string& path, const std::string& token,
                             std::chrono::milliseconds timeout, TokenScheme scheme) {
  return exchange(client, {"GET", path, token, {}, {}, scheme}, timeout);
}

Status put_bytes(HttpClient& client, const std::string& path, const std::string& body,
                 const std::string& type, const std::string& token,
                 std::chrono::milliseconds timeout) {
  WEFT_TRY_STATUS(exchange(client, {"PUT", path, token, body, type}, timeout));
  return {};
}

Result<std::string> send_json(HttpClient& client, std::string_view method, const std::string& path,
                              const std::string& json, const std::string& token,
                              std::chrono::milliseconds timeout) {
  return exchange(client, {method, path, token, json, "application/json"}, timeout);
}

}  // namespace weft::adapt::live
