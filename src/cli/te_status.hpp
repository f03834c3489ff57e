// weft te --from: what a service's traffic engineering does now.
#pragma once

#include "cli/cli.hpp"
#include "cli/service_client.hpp"

namespace weft::cli {

// With --json what the service says. The exit status.
int te_status_command(const Common& common, const ServiceArgs& args);

}  // namespace weft::cli
