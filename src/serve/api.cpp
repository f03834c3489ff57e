#include "serve/api.hpp"

#include <utility>

#include "serve/routes.hpp"
#include "serve/web.hpp"

namespace weft::serve {

struct Api::Impl {
  Bus& bus;
  std::unique_ptr<Web> web;
};

Api::Api(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Api::~Api() { stop(); }

Result<std::unique_ptr<Api>> Api::listen(ApiOptions options, Service& service, port::Store& store,
                                         Bus& bus) {
  WEFT_TRY(std::unique_ptr<Web> web,
           Web::listen(std::move(options), [&](const ApiOptions& kept, Meters& meters,
                                               const std::atomic<bool>& is_stopping) {
             return make_routes({kept, service, store, bus, meters, is_stopping});
           }));
  return std::make_unique<Api>(std::make_unique<Impl>(bus, std::move(web)));
}

std::uint16_t Api::port() const { return impl_->web->port(); }
std::string Api::address() const { return impl_->web->address(); }
const std::vector<Route>& Api::routes() const { return impl_->web->routes(); }

void Api::stop() {
  impl_->web->begin_stop();
  impl_->bus.wake();
  impl_->web->stop();
}

Status Api::reload() { return impl_->web->reload(); }

}  // namespace weft::serve
