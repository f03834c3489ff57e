// `weft serve`: all of operate as one service.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct ServeArgs {
  std::string fabric, config;
  std::string store = "weft.db";  // a file, or postgres://... or "host=... dbname=..."
  std::string listen = "127.0.0.1:8630";
  std::vector<std::string> syslog;  // udp://, tcp:// and tls:// addresses
  std::string inventory, catalogue;
  std::string tokens, certificate, key, client_ca;
  std::string lab;        // the lab whose fabric is served; its actuator and syslog
  std::string snapshots;  // directory; empty: none are taken
};

// Declares the options on the command; `args` must outlive it.
void add_serve(CLI::App& command, ServeArgs& args);
int serve_command(const Common& common, const ServeArgs& args);

}  // namespace weft::cli
