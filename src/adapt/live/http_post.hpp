// Posting to somebody's HTTP service, who may be slow, busy or ill-meaning.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct HttpTarget {
  std::string origin;   // "https://host:port"
  std::string path;     // "/v2/enqueue"
  std::string ca_file;  // of the authority that is trusted; "": the system's
};

// How often and how long it is tried.
struct RetryPolicy {
  std::uint32_t tries = 4;
  std::chrono::milliseconds timeout{5'000};    // of one try, all in all
  std::chrono::milliseconds backoff{250};      // before the second; doubled each time
  std::chrono::milliseconds patience{20'000};  // of all tries together
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// "https://host[:port]/path"; plain http only to this machine, unless `plain` allows it: whatever
// is sent could be read on the way. Fails: Errc::value.
enum class PlainHttp : std::uint8_t { local_only, anywhere };
Result<HttpTarget> parse_url(const Token& url, PlainHttp plain);

// url, ca_file, timeout, tries, backoff, patience, plain_http of a section.
struct HttpSettings {
  HttpTarget target;
  RetryPolicy retry;
};
HttpSettings read_http_settings(Reader& reader);

// Posts JSON until it is taken (2xx). Tries again where the connection fails and on 408, 429 and
// 5xx, after the back-off or what Retry-After says in seconds, within the patience; any other
// answer is final. Redirections are not followed. `headers` is asked anew for every try: signatures
// hold the time. TLS certificates are always checked. Answers are read up to 64 KiB. Fails:
// Errc::io with the last answer; Errc::value where it was refused for good.
Status post_json(const HttpTarget& target, const RetryPolicy& retry, const std::string& body,
                 const std::function<HttpHeaders()>& headers);

// Any other request, tried once within the time-out of one try; `path` stands behind the origin.
// Answers of any status are returned. Fails: Errc::io where there was none.
struct HttpAnswer {
  int status = 0;
  std::string body;
};
Result<HttpAnswer> send_json(const HttpSettings& settings, const std::string& method,
                             const std::string& path, const std::string& body,
                             const HttpHeaders& headers);

// The content of a file that holds one secret, without blanks around it.
// Fails: Errc::io; Errc::value where it is empty, has several lines, or others may read it.
Result<std::string> read_secret(const std::string& path);

}  // namespace weft::adapt::live
