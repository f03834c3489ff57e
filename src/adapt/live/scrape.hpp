// GET of a /metrics page: bounded in time and size, whatever the other end does.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "adapt/live/http_client.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct ScrapeOptions {
  std::chrono::milliseconds timeout{5'000};  // for all of it
  std::size_t bytes_max = 64u << 20;
  TlsFiles tls;
  std::string bearer_token;  // sent as Authorization, to https and loopback only; "": none
};

// The body of a 200 answer to http://HOST[:PORT]/PATH or https://..., whose certificate HttpClient
// checks. Redirects are not followed. Waits, but not longer than the timeout (for names, as long as
// the system's resolver does: give addresses where that matters).
// Fails: Errc::value for a URL that is none and files that cannot be used; Errc::io when there is
// no such answer: no connection, no trust, another status, more bytes, too late. Any thread may
// call it.
Result<std::string> scrape(const std::string& url, const ScrapeOptions& options);

// "http://10.0.0.1:9100/metrics" gives "10.0.0.1"; "" where it is no such URL.
std::string host_of(const std::string& url);

}  // namespace weft::adapt::live
