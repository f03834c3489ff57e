// What a process tells the service manager that started it: systemd's notification protocol,
// sd_notify(3), "datagrams to the socket of $NOTIFY_SOCKET". Nobody told where there is none.
#pragma once

#include <string>
#include <string_view>

namespace weft {
inline namespace os {

class ServiceManager {
 public:
  ServiceManager();  // as the environment says

  bool is_there() const { return !socket_.empty(); }
  void ready(std::string_view status) const;
  void stopping() const;
  // That this process is alive. Where that is not said for the unit's WatchdogSec, it is killed.
  void alive() const;

 private:
  void tell(std::string_view text) const;

  std::string socket_;  // a path, or "@" and a name without a file
};

}  // namespace os
}  // namespace weft
