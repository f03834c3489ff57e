// NATS JetStream: a bus that keeps lines on disk between those who send them and the service.
#pragma once

#include <nats/nats.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct NatsUrl {
  std::vector<HttpOrigin> servers;  // of one cluster
  bool is_tls = false;
  std::string subject;  // of lines, without the feed behind it: "weft" for weft.records
};

// Whether a URL is of NATS: "nats://..." or "tls://...".
bool is_nats(std::string_view url);

// "nats://HOST[:PORT][,HOST[:PORT]...][/SUBJECT]" for servers on this machine, "tls://..." for any;
// 4222 and "weft" where left out. Fails: Errc::parse, Errc::value.
Result<NatsUrl> parse_nats_url(const ServiceUrl& service);

struct NatsAccess {
  TlsFiles tls;
  std::string token;  // "": none
};

template <auto destroy>
struct NatsDestroy {
  template <class T>
  void operator()(T* it) const {
    destroy(it);
  }
};
template <class T, auto destroy>
using NatsHandle = std::unique_ptr<T, NatsDestroy<destroy>>;

// A connection to one of the servers, which is not mended when it breaks: whoever uses it opens the
// next, which also reads renewed certificates.
class NatsConnection {
 public:
  // At any of the servers, each tried for `timeout`. TLS only to who proves its name; besides `ca`
  // the library trusts the system's authorities. Fails: Errc::io, Errc::value (TLS files).
  static Result<NatsConnection> open(const NatsUrl& url, const NatsAccess& access,
                                     std::chrono::milliseconds timeout);

  jsCtx* stream() const { return stream_.get(); }
  natsConnection* get() const { return connection_.get(); }
  // Breaks off what is under way. Any thread.
  void close() const { natsConnection_Close(connection_.get()); }

 private:
  static Result<NatsConnection> open_at(const HttpOrigin& server, const NatsUrl& url,
                                        const NatsAccess& access,
                                        std::chrono::milliseconds timeout);
  NatsHandle<natsConnection, natsConnection_Destroy> connection_;
  NatsHandle<jsCtx, jsCtx_Destroy> stream_;
};

// What a call of the library on this thread said when it failed.
std::string nats_trouble(natsStatus status);

}  // namespace weft::adapt::live
