#include "serve/web.hpp"

#include <fmt/format.h>

#include <utility>

#include "serve/auth.hpp"
#include "serve/front.hpp"
#include "serve/http_server.hpp"
#include "serve/listener.hpp"
#include "serve/tls.hpp"

namespace weft::serve {
namespace {

struct Secrets {
  std::shared_ptr<const Tokens> tokens;
  std::shared_ptr<const TlsContext> tls;
};

Result<Secrets> read_secrets(const ApiOptions& options) {
  Secrets out;
  if (!options.tokens.empty()) {
    WEFT_TRY(Tokens tokens, Tokens::load(options.tokens));
    if (!options.jwt_keys.empty()) {
      WEFT_TRY(JwtKeys keys, JwtKeys::load(options.jwt_keys));
      tokens.trust(std::move(keys), options.audience);
    }
    if (!tokens.has_tokens() && options.client_ca.empty())
      return fail(Errc::value, {options.tokens}, "names certificates only",
                  "add tokens, or give the authority of clients' certificates");
    out.tokens = std::make_shared<const Tokens>(std::move(tokens));
  }
  if (!options.jwt_keys.empty() && (options.tokens.empty() || options.audience.empty()))
    return fail(Errc::value, {}, "keys of JWT-SVIDs need an audience and a file of tokens",
                "give --audience, and --tokens with what each identity may do");
  if (options.certificate.empty() != options.key.empty())
    return fail(Errc::value, {}, "a certificate and its key come together", "give both or none");
  if (options.certificate.empty() && !options.client_ca.empty())
    return fail(Errc::value, {}, "clients' certificates need TLS", "give a certificate and key");
  if (!options.certificate.empty()) {
    WEFT_TRY(TlsContext tls,
             TlsContext::load({options.certificate, options.key, options.client_ca}));
    out.tls = std::make_shared<const TlsContext>(std::move(tls));
  }
  return out;
}

Status check_exposure(const ListenAddress& address, const ApiOptions& options) {
  const bool has_guard = !options.tokens.empty() || !options.client_ca.empty();
  if (address.is_local() || (has_guard && !options.certificate.empty())) return {};
  return fail(Errc::infeasible, {},
              fmt::format("{} can be reached from other machines", address.text()),
              "give TLS (certificate, key) and tokens or the authority of clients' certificates; "
              "or listen at 127.0.0.1, [::1] or unix:/path");
}

Front::Access access_of(const ListenAddress& address, const ApiOptions& options) {
  if (!options.tokens.empty() || !options.client_ca.empty()) return Front::Access::guarded;
  return address.is_file() ? Front::Access::open_file : Front::Access::open_host;
}

}  // namespace

struct Web::Impl {
  Impl(ApiOptions given, const ListenAddress& at, const MakeRoutes& make_routes)
      : options(std::move(given)),
        address(at),
        routes(make_routes(options, meters, is_stopping)),
        front(access_of(address, options), options.limits, routes, meters) {
    if (options.log) front.set_log(options.log);
  }

  void use(const Secrets& secrets) {
    front.set_tokens(secrets.tokens);
    server->set_tls(secrets.tls);
  }
  void log(LogLevel level, std::string_view line) const {
    if (options.log) options.log(level, line);
  }

  const ApiOptions options;
  ListenAddress address;
  Meters meters;
  std::atomic<bool> is_stopping = false;
  const std::vector<Route> routes;
  Front front;
  std::unique_ptr<HttpServer> server;
};

Web::Web(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Web::~Web() { stop(); }

Result<std::unique_ptr<Web>> Web::listen(ApiOptions options, const MakeRoutes& make_routes) {
  WEFT_TRY(const ListenAddress address, parse_listen_address(options.listen));
  WEFT_TRY_STATUS(check_exposure(address, options));
  WEFT_TRY(const Secrets secrets, read_secrets(options));
  WEFT_TRY(Listener listener, Listener::open(address));
  auto impl = std::make_unique<Impl>(std::move(options), listener.address(), make_routes);
  WEFT_TRY(impl->server,
           HttpServer::start({impl->options, impl->front, impl->meters, impl->is_stopping},
                             std::move(listener)));
  impl->use(secrets);
  impl->log(LogLevel::info, fmt::format("listening at {}{}", impl->address.text(),
                                        secrets.tls == nullptr ? "" : " with TLS"));
  if (access_of(address, impl->options) != Front::Access::guarded)
    impl->log(LogLevel::warning,
              "no tokens are configured: anyone who can connect has full access");
  return std::make_unique<Web>(std::move(impl));
}

std::uint16_t Web::port() const { return impl_->address.port(); }
std::string Web::address() const { return impl_->address.text(); }
const std::vector<Route>& Web::routes() const { return impl_->routes; }
void Web::begin_stop() { impl_->is_stopping = true; }

void Web::stop() {
  begin_stop();
  impl_->server->stop();
}

Status Web::reload() {
  WEFT_TRY(const Secrets secrets, read_secrets(impl_->options));
  impl_->use(secrets);
  return {};
}

}  // namespace weft::serve
