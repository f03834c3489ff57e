// weft te --from: what a service's traffic engineering does now.
#pragma once

#include <string>

#include "cli/cli.hpp"

namespace weft::cli {

struct TeStatusArgs {
  std::string from, token, ca, certificate, key;  // of the service
};

// With --json what the service says. Fails: as adapt::live::get_text.
Status show_te_status(const Common& common, const TeStatusArgs& args);

}  // namespace weft::cli
