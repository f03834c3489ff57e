// Commands to one switch, by its transport.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/devices/device_file.hpp"
#include "base/result.hpp"

namespace weft::adapt::devices {

class Session {
 public:
  virtual ~Session() = default;
  // One after the other, until one fails; what each printed. Every command, or request with all of
  // them, may take as long as the settings allow. Fails: Errc::unsupported with the switch's words
  // where it refuses one; Errc::io where nobody knows what became of it.
  virtual Result<std::vector<std::string>> run(const Commands& commands) = 0;
};

using OpenSession = std::function<std::unique_ptr<Session>(const Device&, const Settings&)>;

// By OpenSSH's client, HTTPS or gNMI; connects anew for each run. Both must outlive it.
std::unique_ptr<Session> open_session(const Device& device, const Settings& settings);

// The arguments of the client, before the command. Its own files of configuration count, too, for
// jump hosts say; what is set here goes before them: no questions, no unknown host keys, nothing
// forwarded.
std::vector<std::string> ssh_arguments(const Device& device, const Settings& settings);

// What eAPI or NX-API answered to these commands, one text for each: JSON objects as such.
// Fails: as Session::run; Errc::io for what is not an answer to them.
Result<std::vector<std::string>> read_rpc_answer(Transport transport, std::string_view body,
                                                 const Commands& commands);

}  // namespace weft::adapt::devices
