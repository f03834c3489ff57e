// What the API can be asked, as one table.
#pragma once

#include <atomic>
#include <vector>

#include "port/store.hpp"
#include "serve/api.hpp"
#include "serve/bus.hpp"
#include "serve/meters.hpp"
#include "serve/openapi.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// What the handlers work with; all must outlive the routes.
struct RouteContext {
  const ApiOptions& options;
  Service& service;
  port::Store& store;
  Bus& bus;
  Meters& meters;
  const std::atomic<bool>& is_stopping;
};

std::vector<Route> make_routes(const RouteContext& context);

}  // namespace weft::serve
