// Connections to HTTP services: bounded in time, and with TLS only to who proves its name.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace httplib {
class ClientImpl;
enum class Error;
}  // namespace httplib

namespace weft::adapt::live {

struct HttpOrigin {
  enum class Scheme : std::uint8_t { http, https } scheme = Scheme::http;
  std::string host;  // a name or an address, of IPv6 without its brackets
  int port = 0;

  bool is_tls() const { return scheme == Scheme::https; }
  // 127.x.x.x, ::1 and localhost; not a name that merely begins so.
  bool is_this_machine() const;
};

// "http://HOST[:PORT]" or "https://...", and nothing behind it; none where it is no such text.
std::optional<HttpOrigin> parse_origin(std::string_view text);

// Paths of PEM files.
struct TlsFiles {
  std::string ca;           // authorities that are trusted; "": the system's
  std::string certificate;  // that is shown to services which ask, with its chain; "": none
  std::string key;          // of it, without a pass phrase
};

// While it lives, writing to a connection that the other side has closed is an error of this thread
// and no signal: TLS writes without telling the kernel so.
class QuietPipes {
 public:
  QuietPipes();
  ~QuietPipes();
  QuietPipes(const QuietPipes&) = delete;
  QuietPipes& operator=(const QuietPipes&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

// One connection at a time, made when it is needed. TLS is 1.2 or newer; the certificate must be
// valid, of a trusted authority, for servers, and of the origin's host (its alternative names).
// There is no way to leave that out.
class HttpClient {
 public:
  // `timeout` is of connecting and of each silence; Watchdog bounds the whole. Files are read here.
  // Fails: Errc::value with the file that does not hold what it should.
  static Result<HttpClient> open(const HttpOrigin& origin, const TlsFiles& files,
                                 std::chrono::milliseconds timeout);
  // Of a socket of this machine.
  static HttpClient open_local(const std::string& path, std::chrono::milliseconds timeout);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // All use of the client, so that trouble() knows what is of it.
  template <class Use>
  auto use(Use&& with) {
    const QuietPipes quiet;
    forget_errors();
    return std::forward<Use>(with)(*client_);
  }
  // Breaks off what is under way. Any thread.
  void stop();
  // What was wrong, from the thread that used it.
  std::string trouble(httplib::Error error) const;

 private:
  HttpClient();
  static void forget_errors();
  Status set_up_tls(const HttpOrigin& origin, const TlsFiles& files);
  void set_up(std::chrono::milliseconds timeout);
  std::unique_ptr<httplib::ClientImpl> client_;
  bool is_tls_ = false;
};

// A weft service: "https://HOST[:PORT]", "http://..." on this machine, or "unix:PATH". `option` is
// what the user gave it by. Fails: Errc::parse, Errc::value.
struct ServiceUrl {
  std::string url, option;
};
Result<HttpClient> open_service(const ServiceUrl& service, const TlsFiles& files,
                                std::chrono::milliseconds timeout);
// By which word a token is given: "Bearer T", or "Token T" as NetBox has it.
enum class TokenScheme : std::uint8_t { bearer, token };

// What it answers to GET, at most 64 MiB; `token`: "" for none. Fails: Errc::io where it does not
// answer, or with 429 and 5xx; Errc::unknown on 404 and Errc::value on other refusals, with its
// words.
Result<std::string> get_text(HttpClient& client, const std::string& path, const std::string& token,
                             std::chrono::milliseconds timeout,
                             TokenScheme scheme = TokenScheme::bearer);

// PUT of bytes of that media type, answered by 200. Fails: as get_text.
Status put_bytes(HttpClient& client, const std::string& path, const std::string& body,
                 const std::string& type, const std::string& token,
                 std::chrono::milliseconds timeout);
// JSON sent by a method, and what is answered with 200. The connection is kept for the next
// request, and small ones leave at once. Fails: as get_text.
Result<std::string> send_json(HttpClient& client, std::string_view method, const std::string& path,
                              const std::string& json, const std::string& token,
                              std::chrono::milliseconds timeout);

// Breaks a client's work off when its time is over: the library's own limits hold for each read,
// and a peer that sends a byte a second would never meet them.
class Watchdog {
 public:
  Watchdog(HttpClient& client, std::chrono::steady_clock::time_point end);
  bool has_acted() const { return has_acted_; }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::atomic<bool> has_acted_ = false;
  std::jthread thread_;  // last: it ends before the others
};

}  // namespace weft::adapt::live
