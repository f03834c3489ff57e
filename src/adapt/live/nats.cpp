#include "adapt/live/nats.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

constexpr std::string_view nats_mark = "nats://", nats_tls_mark = "tls://";
constexpr std::string_view usual_port = ":4222", usual_subject = "weft";

// Words of letters, digits, - and _, with dots between them: also a name for a stream.
bool is_subject(std::string_view text) {
  const auto is_word = [](std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
  };
  return std::ranges::all_of(split(text, '.'), is_word);
}

std::string with_port(std::string_view server) {
  const std::size_t host_end = server.starts_with('[') ? server.find(']') : 0;
  const bool has_port =
      host_end != std::string_view::npos && server.find(':', host_end) != std::string_view::npos;
  return std::string(server) + std::string(has_port ? "" : usual_port);
}

std::string address_of(const HttpOrigin& server, bool is_tls) {
  const bool is_six = server.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}:{}", is_tls ? nats_tls_mark : nats_mark, is_six ? "[" : "",
                     server.host, is_six ? "]" : "", server.port);
}

using Options = NatsHandle<natsOptions, natsOptions_Destroy>;

// The library compares the name only where it is told to.
Status set_tls(natsOptions* options, const std::string& host, const TlsFiles& files) {
  const auto refused = [](const std::string& file, natsStatus status) {
    return fail(Errc::value, {file, 0, 0}, "no TLS: " + nats_trouble(status),
                "give PEM files that hold what they should");
  };
  if (files.certificate.empty() != files.key.empty())
    return fail(Errc::value, {files.certificate + files.key, 0, 0},
                "a certificate and its key are both required", "set both");
  if (const natsStatus status = natsOptions_SetSecure(options, true); status != NATS_OK)
    return refused("", status);
  if (const natsStatus status = natsOptions_SetExpectedHostname(options, host.c_str());
      status != NATS_OK)
    return refused("", status);
  if (!files.ca.empty())
    if (const natsStatus status = natsOptions_LoadCATrustedCertificates(options, files.ca.c_str());
        status != NATS_OK)
      return refused(files.ca, status);
  if (files.certificate.empty()) return {};
  const natsStatus status =
      natsOptions_LoadCertificatesChain(options, files.certificate.c_str(), files.key.c_str());
  if (status != NATS_OK) return refused(files.certificate, status);
  return {};
}

}  // namespace

bool is_nats(std::string_view url) {
  return url.starts_with(nats_mark) || url.starts_with(nats_tls_mark);
}

Result<NatsUrl> parse_nats_url(const ServiceUrl& service) {
  const auto refuse = [&](Errc code, std::string what) {
    return fail(code, {service.option, 0, 0}, std::move(what),
                "write tls://HOST[:PORT],...[/SUBJECT], or nats://127.0.0.1:PORT on this machine");
  };
  if (!is_nats(service.url))
    return refuse(Errc::parse, quote(service.url) + " is not an address of NATS");
  NatsUrl out{.servers = {},
              .is_tls = service.url.starts_with(nats_tls_mark),
              .subject = std::string(usual_subject)};
  std::string_view rest = service.url;
  rest.remove_prefix(out.is_tls ? nats_tls_mark.size() : nats_mark.size());
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    out.subject = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (!is_subject(out.subject))
      return refuse(Errc::value,
                    quote(out.subject) +
                        " is not a subject: words of letters, digits, - and _, with dots "
                        "between them");
  }
  for (const std::string_view server : split(rest, ',')) {
    auto origin = parse_origin("http://" + with_port(server));
    if (!origin) return refuse(Errc::parse, quote(server) + " is not a host and port");
    if (!out.is_tls && !origin->is_this_machine())
      return refuse(Errc::value,
                    "without TLS the token and all lines could be read on the network");
    out.servers.push_back(*std::move(origin));
  }
  return out;
}

std::string nats_trouble(natsStatus status) {
  natsStatus last = NATS_OK;
  const char* const detail = nats_GetLastError(&last);
  const std::string text = natsStatus_GetText(status);
  if (detail == nullptr || last != status || text == detail || *detail == '\0') return text;
  return fmt::format("{}: {}", text, detail);
}

Result<NatsConnection> NatsConnection::open_at(const HttpOrigin& server, const NatsUrl& url,
                                               const NatsAccess& access,
                                               std::chrono::milliseconds timeout) {
  const std::string address = address_of(server, url.is_tls);
  natsOptions* made = nullptr;
  natsStatus status = natsOptions_Create(&made);
  const Options options(made);
  const auto then = [&](auto set, auto... arguments) {
    if (status == NATS_OK) status = set(options.get(), arguments...);
  };
  then(natsOptions_SetURL, address.c_str());
  then(natsOptions_SetName, "weft");
  then(natsOptions_SetTimeout, std::int64_t{timeout.count()});
  then(natsOptions_SetAllowReconnect, false);
  then(natsOptions_SetIgnoreDiscoveredServers, true);  // their names were not given
  then(natsOptions_SetPingInterval, std::int64_t{timeout.count()});
  if (!access.token.empty()) then(natsOptions_SetToken, access.token.c_str());
  if (status == NATS_OK && url.is_tls)
    WEFT_TRY_STATUS(set_tls(options.get(), server.host, access.tls));
  NatsConnection out;
  natsConnection* connection = nullptr;
  then([&](natsOptions* with) { return natsConnection_Connect(&connection, with); });
  out.connection_.reset(connection);
  jsOptions waits;
  if (status == NATS_OK) status = jsOptions_Init(&waits);
  waits.Wait = timeout.count();
  jsCtx* stream = nullptr;
  if (status == NATS_OK) status = natsConnection_JetStream(&stream, connection, &waits);
  out.stream_.reset(stream);
  if (status == NATS_OK) return out;
  return fail(Errc::io, {address, 0, 0}, "no connection to NATS: " + nats_trouble(status),
              "check that nats-server runs there, its certificate and the token");
}

Result<NatsConnection> NatsConnection::open(const NatsUrl& url, const NatsAccess& access,
                                            std::chrono::milliseconds timeout) {
  // Not all clients at the first, and not again at the one that just failed.
  static std::atomic<std::size_t> next = static_cast<std::size_t>(::getpid());
  Error trouble;
  for (std::size_t i = 0; i < url.servers.size(); ++i) {
    auto out = open_at(url.servers[next++ % url.servers.size()], url, access, timeout);
    if (out || out.error().code != Errc::io) return out;
    trouble = std::move(out).error();
  }
  return std::unexpected(std::move(trouble));
}

}  // namespace weft::adapt::live
