// The header by which recvmmsg(2) is told where to put a datagram, and its control messages.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace weft::adapt::live {

// What is pointed to must outlive the call; the kernel overwrites the sizes, so that a header is
// good for one. Without room for it the sender is not told.
inline msghdr header_for(iovec& bytes, std::span<std::byte> from, std::span<std::byte> control) {
  msghdr out{};
  out.msg_name = from.data();
  out.msg_namelen = static_cast<socklen_t>(from.size());
  out.msg_iov = &bytes;
  out.msg_iovlen = 1;
  out.msg_control = control.data();
  out.msg_controllen = control.size();
  return out;
}

template <std::size_t size>
struct alignas(cmsghdr) ControlBytes {
  std::array<std::byte, size> bytes;
};

template <class T>
T control_value(cmsghdr* header) {
  T out{};
  std::memcpy(&out, CMSG_DATA(header), sizeof out);
  return out;
}

}  // namespace weft::adapt::live
