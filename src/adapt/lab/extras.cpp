#include "adapt/lab/extras.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>

#include "adapt/lab/lab.hpp"
#include "adapt/lab/netns.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr int severity_error = 3, severity_warning = 4, severity_notice = 5, severity_info = 6;
constexpr int local7 = 23;
constexpr int poll_ms = 20;  // how late a line of a log may be
constexpr std::size_t line_bytes_max = 8'192;
constexpr std::size_t link_buffer_bytes = 65'536;

// RFC 3339 with microseconds, UTC.
std::string syslog_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(now.tv_sec), now.tv_nsec / 1000);
}

// Takes whole lines from a growing file, from its beginning.
class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)) {}

  template <class Visit>
  void read_lines(Visit visit) {
    if (!file_.valid()) file_ = Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.valid()) return;
    std::array<char, 16'384> buffer{};
    for (;;) {
      const ssize_t size = read(file_.get(), buffer.data(), buffer.size());
      if (size <= 0) return;
      rest_.append(buffer.data(), static_cast<std::size_t>(size));
      std::size_t from = 0;
      for (std::size_t to = rest_.find('\n'); to != std::string::npos;
           to = rest_.find('\n', from)) {
        visit(std::string_view(rest_).substr(from, to - from));
        from = to + 1;
      }
      rest_.erase(0, from);
      if (rest_.size() > line_bytes_max) rest_.clear();  // no line of a log
    }
  }

 private:
  std::string path_;
  Fd file_;
  std::string rest_;
};

// What the keeper has of one switch.
struct Watched {
  std::string host;
  Tail log;
  Fd links;   // the kernel's news of interfaces
  Fd socket;  // to the collector
  std::map<int, bool> carrier;
  std::map<std::string, std::string, std::less<>> names;  // of interfaces, as the fabric has them
};

Result<Watched> watch(const Lab& lab, LabNodeId id) {
  const LabNode& node = lab.plan.nodes[id];
  Watched out{.host = node.name,
              .log = Tail(lab.node_directory(id) + "/frr.log"),
              .links = {},
              .socket = {},
              .carrier = {},
              .names = {}};
  for (const EndId end : node.ends)
    out.names[lab.plan.end(end).interface] = lab.fabric.interface_name(lab.plan.end(end).link);
  WEFT_TRY(out.socket, socket_in_netns(node.netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  WEFT_TRY(out.links,
           socket_in_netns(node.netns, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK;
  if (bind(out.links.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0)
    return system_failure("watching the interfaces of " + node.name, errno);
  sockaddr_in collector{};
  collector.sin_family = AF_INET;
  collector.sin_port = htons(syslog_port);
  collector.sin_addr.s_addr = htonl(syslog_collector);
  if (connect(out.socket.get(), reinterpret_cast<const sockaddr*>(&collector), sizeof collector) !=
      0)
    return system_failure(node.name + ": the route to the collector", errno,
                          "the lab has no management network");
  return out;
}

// Nobody need listen: what is refused is lost, as with any syslog over UDP.
void send_text(const Watched& watched, const std::string& text) {
  static_cast<void>(!send(watched.socket.get(), text.data(), text.size(), MSG_NOSIGNAL));
}

void tell_carrier(Watched& watched, const ifinfomsg& link, std::string_view name) {
  const bool carrier = (link.ifi_flags & IFF_RUNNING) != 0;
  const auto [it, fresh] = watched.carrier.try_emplace(link.ifi_index, carrier);
  if (it->second == carrier && (!fresh || carrier)) return;
  it->second = carrier;
  const auto known = watched.names.find(name);
  const std::string text =
      fmt::format("{}: Link is {}", known == watched.names.end() ? name : known->second,
                  carrier ? "Up" : "Down");
  send_text(watched, syslog_message(carrier ? severity_info : severity_warning, syslog_now(),
                                    watched.host, "kernel", text));
}

void read_links(Watched& watched) {
  alignas(nlmsghdr) std::array<char, link_buffer_bytes> buffer{};
  for (;;) {
    const ssize_t size = recv(watched.links.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return;
    auto left = static_cast<unsigned>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != RTM_NEWLINK) continue;
      const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(header));
      auto room = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof *link));
      for (const rtattr* attribute = IFLA_RTA(link); RTA_OK(attribute, room);
           attribute = RTA_NEXT(attribute, room))
        if (attribute->rta_type == IFLA_IFNAME)
          tell_carrier(watched, *link, static_cast<const char*>(RTA_DATA(attribute)));
    }
  }
}

Result<Fd> termination() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd.valid()) return system_failure("signalfd", errno);
  return fd;
}

}  // namespace

std::string snmpd_path() {
  for (const char* path : {"/usr/sbin/snmpd", "/usr/local/sbin/snmpd"})
    if (access(path, X_OK) == 0) return path;
  return "";
}

std::string snmpd_config() {
  return fmt::format("rocommunity {}\nsysServices 72\n", snmp_community);
}

ProcessSpec snmpd_process(const LabNode& node, const std::string& directory) {
  const std::string path = snmpd_path();
  return {.role = "snmpd",
          .node = node.name,
          .netns = node.netns,
          // In the foreground, with our configuration alone and without reading MIB files.
          .argv = {path.empty() ? "/usr/sbin/snmpd" : path, "-f", "-Lf", directory + "/snmpd.log",
                   "-C", "-c", directory + "/snmpd.conf", "-p", directory + "/snmpd.pid", "-M", "",
                   "-m", "", "-I", "-smux", fmt::format("udp:{}:161", ipv4_text(node.management))},
          .output = directory + "/snmpd.out"};
}

std::string syslog_message(int severity, std::string_view time, std::string_view host,
                           std::string_view app, std::string_view text) {
  return fmt::format("<{}>1 {} {} {} - - - {}", local7 * 8 + severity, time.empty() ? "-" : time,
                     host, app, text);
}

std::string forwarded_line(std::string_view line, std::string_view now, std::string_view host) {
  // Date, time, then the daemon's name with a colon.
  const std::size_t date = line.find(' ');
  const std::size_t time = date == std::string_view::npos ? date : line.find(' ', date + 1);
  if (time == std::string_view::npos) return "";
  const std::string_view rest = line.substr(time + 1);
  const std::size_t colon = rest.find(": ");
  if (colon == std::string_view::npos || rest.substr(0, colon).contains(' ')) return "";
  const std::string_view text = rest.substr(colon + 2);
  const bool bad = text.contains("Down") || text.contains("rror");
  return syslog_message(bad ? severity_error : severity_notice, now, host, rest.substr(0, colon),
                        text);
}

Status keep(const Lab& lab) {
  WEFT_TRY(const Fd end, termination());
  std::vector<Watched> watched;
  if (lab.options.syslog == Extra::on)
    for (const LabNodeId id : lab.plan.switches()) {
      WEFT_TRY(Watched one, watch(lab, id));
      watched.push_back(std::move(one));
    }
  std::error_code ignored;
  for (;;) {
    pollfd wait{end.get(), POLLIN, 0};
    if (poll(&wait, 1, watched.empty() ? 1'000 : poll_ms) > 0) return {};
    if (!std::filesystem::exists(lab.directory + "/lab.json", ignored)) return {};
    for (Watched& one : watched) {
      read_links(one);
      one.log.read_lines([&](std::string_view line) {
        const std::string text = forwarded_line(line, syslog_now(), one.host);
        if (!text.empty()) send_text(one, text);
      });
    }
  }
}

}  // namespace weft::adapt::lab
