#include "adapt/lab/extras.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>

#include "adapt/lab/frr.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/linux_switch/link_watch.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr int severity_error = 3, severity_warning = 4, severity_notice = 5, severity_info = 6;
constexpr int local7 = 23;
constexpr int poll_ms = 20;  // how late a line of a log may be
constexpr std::size_t line_bytes_max = 8'192;

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
  Tail log, watchdog;  // of the daemons, and of watchfrr
  LinkWatch links;
  Fd socket;                                              // to the collector
  std::map<std::string, std::string, std::less<>> names;  // of interfaces, as the fabric has them
};

Result<Watched> watch(const Lab& lab, LabNodeId id) {
  const LabNode& node = lab.plan.nodes[id];
  WEFT_TRY(LinkWatch links, watch_links(node.netns));
  Watched out{.host = node.name,
              .log = Tail(lab.node_directory(id) + "/frr.log"),
              .watchdog = Tail(lab.node_directory(id) + "/watchfrr.out"),
              .links = std::move(links),
              .socket = {},
              .names = {}};
  for (const EndId end : node.ends)
    out.names[lab.plan.end(end).interface] = lab.fabric.interface_name(lab.plan.end(end).link);
  WEFT_TRY(out.socket, socket_in_netns(node.netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
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

void tell_carrier(const Watched& watched, std::string_view name, bool carrier) {
  const auto known = watched.names.find(name);
  const std::string text =
      fmt::format("{}: Link is {}", known == watched.names.end() ? name : known->second,
                  carrier ? "Up" : "Down");
  send_text(watched, syslog_message(carrier ? severity_info : severity_warning, syslog_now(),
                                    watched.host, "kernel", text));
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

ProcessSpec watchfrr_process(const LabNode& node, const std::string& directory,
                             std::span<const std::string_view> daemons) {
  ProcessSpec out{.role = "watchfrr",
                  .node = node.name,
                  .netns = node.netns,
                  .argv = {fmt::format("{}/watchfrr", frr_programs), "--dry", "-S", directory, "-i",
                           "3", "-t", "10", "-p", directory + "/watchfrr.pid"},
                  .output = directory + "/watchfrr.out"};
  out.argv.insert(out.argv.end(), daemons.begin(), daemons.end());
  return out;
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
  // "[EC 268435457]": an error of FRRouting's list.
  const bool bad = text.contains("Down") || text.contains("rror") || text.contains("[EC ");
  std::string_view app = rest.substr(0, colon);
  if (app == "WATCHFRR") app = "watchfrr";  // as it calls itself where syslog is its own
  return syslog_message(bad ? severity_error : severity_notice, now, host, app, text);
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
      one.links.read(
          [&](std::string_view name, bool carrier) { tell_carrier(one, name, carrier); });
      for (Tail* tail : {&one.log, &one.watchdog})
        tail->read_lines([&](std::string_view line) {
          const std::string text = forwarded_line(line, syslog_now(), one.host);
          if (!text.empty()) send_text(one, text);
        });
    }
  }
}

}  // namespace weft::adapt::lab
