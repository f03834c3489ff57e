#include "adapt/linux_switch/link_watch.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "os/error.hpp"

namespace weft::adapt {
inline namespace linux_switch {
namespace {

constexpr std::size_t link_news_bytes = 1 << 15;

}  // namespace

Result<LinkWatch> LinkWatch::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return system_failure("watching interfaces", errno);
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK;
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0)
    return system_failure("watching interfaces", errno);
  return LinkWatch(std::move(socket));
}

bool LinkWatch::read(const std::function<void(std::string_view, bool)>& tell) {
  alignas(nlmsghdr) std::array<char, link_news_bytes> buffer{};
  bool is_whole = true;
  for (;;) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == ENOBUFS) is_whole = false;
    if (size < 0 && (errno == ENOBUFS || errno == EINTR)) continue;
    if (size <= 0) return is_whole;
    auto left = static_cast<unsigned>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != RTM_NEWLINK) continue;
      const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
      const bool carrier = (link->ifi_flags & IFF_RUNNING) != 0;
      const auto [known, fresh] = carrier_.try_emplace(link->ifi_index, carrier);
      if (known->second == carrier && (!fresh || carrier)) continue;
      known->second = carrier;
      auto room = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof *link));
      for (const rtattr* attribute = IFLA_RTA(link); RTA_OK(attribute, room);
           attribute = RTA_NEXT(attribute, room))
        if (attribute->rta_type == IFLA_IFNAME)
          tell(static_cast<const char*>(RTA_DATA(attribute)), carrier);
    }
  }
}

}  // namespace linux_switch
}  // namespace weft::adapt
