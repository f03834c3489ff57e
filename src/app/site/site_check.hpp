// What a site needs, looked at before anything of it is started.
#pragma once

#include <string>
#include <vector>

#include "app/site/site_file.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

struct SiteCheck {
  std::string what;     // "service.listen 127.0.0.1:8630"
  std::string problem;  // "": fine
  std::string advice;
};

// Files can be read, programs executed, ports bound, the state folder written; every host that
// probes has an address. Nothing is left behind. Cost: a bind() for each port.
std::vector<SiteCheck> check_site(const Site& site, const model::Fabric& fabric);

}  // namespace weft::app
