// The kernel's news of a switch's interfaces: what its agent would tell about carrier.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "adapt/lab/plan.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

class LinkWatch {
 public:
  // Of the interfaces of a switch's namespace, from now on. Fails: Errc::io, and where the
  // namespace is gone.
  static Result<LinkWatch> open(const LabNode& node);
  // Readable when there is news.
  int fd() const { return socket_.get(); }
  // Calls `tell` with each interface whose carrier changed; of one not heard of before, only when
  // it has none. Waits for nothing.
  void read(const std::function<void(std::string_view interface, bool carrier)>& tell);

 private:
  explicit LinkWatch(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
  std::map<int, bool> carrier_;  // by interface index
};

}  // namespace weft::adapt::lab
