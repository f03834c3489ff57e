// The kernel's news of a switch's interfaces.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt {
inline namespace linux_switch {

class LinkWatch {
 public:
  // Of the interfaces of the calling thread's namespace, from now on. Fails: Errc::io.
  static Result<LinkWatch> open();
  // Readable when there is news.
  int fd() const { return socket_.get(); }
  // Calls `tell` with each interface whose carrier changed; of one not heard of before, only when
  // it has none. Waits for nothing. False: news were lost, and who knows the interfaces by them
  // should look at all (Netlink::links).
  bool read(const std::function<void(std::string_view interface, bool carrier)>& tell);

 private:
  explicit LinkWatch(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
  std::map<int, bool> carrier_;  // by interface index
};

}  // namespace linux_switch
}  // namespace weft::adapt
