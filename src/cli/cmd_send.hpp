// `weft send`: lines of any feed to a service.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct SendArgs {
  std::string to, feed = "records", token, ca, certificate, key;
  std::string spool;  // directory; empty: one of its own, removed when all went well
  std::string linger = "5 s";
};

// Declares the options on the command; `args` must outlive it.
void add_send(CLI::App& command, SendArgs& args);
int send_command(const Common& common, const SendArgs& args);

}  // namespace weft::cli
