#include "adapt/lab/frr.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <thread>

#include "adapt/lab/netns.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr std::size_t answer_bytes_max = 64 << 20;

template <class... Args>
void line(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  out += '\n';
}

// Host names of FRR know no colon.
std::string host_name(const LabNode& node) {
  std::string out = node.name;
  std::ranges::replace(out, ':', '-');
  return out;
}

std::string head(const LabNode& node, const std::string& directory) {
  return fmt::format("hostname {}\nlog file {}/frr.log informational\n", host_name(node),
                     directory);
}

std::string bfd_profile(const FrrSettings& settings) {
  return fmt::format(
      "bfd\n profile weft\n  transmit-interval {0}\n  receive-interval {0}\n  detect-multiplier 3\n"
      " exit\nexit\n",
      settings.bfd_interval_ms);
}

std::string neighbour(const LabPlan& plan, EndId end) {
  return ipv4_text(plan.end(end.peer()).address);
}

void add_neighbours(std::string& out, const LabPlan& plan, const LabNode& node) {
  for (const EndId end : node.ends) {
    if (plan.cables[end.cable].to_host) continue;
    line(out, " neighbor {} remote-as {}", neighbour(plan, end), plan.node_of(end.peer()).asn);
    line(out, " neighbor {} peer-group FABRIC", neighbour(plan, end));
  }
}

void add_networks(std::string& out, const LabPlan& plan, const LabNode& node) {
  line(out, "  network {}/32", ipv4_text(node.loopback));
  for (const EndId end : node.ends)
    if (plan.cables[end.cable].to_host) line(out, "  network {}/32", neighbour(plan, end));
}

Result<bool> wait_readable(const Fd& socket, std::chrono::milliseconds patience) {
  pollfd poll_fd{socket.get(), POLLIN, 0};
  const int ready = poll(&poll_fd, 1, static_cast<int>(patience.count()));
  if (ready < 0 && errno != EINTR) return system_failure("waiting for a daemon", errno);
  return ready > 0;
}

Result<Fd> connect_once(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(Errc::value, {}, "the path of a socket is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Where a daemon that is stopped has a full queue of callers, a blocking one would hang.
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return system_failure("creating a socket", errno);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_failure("connecting to " + path, errno);
  return socket;
}

}  // namespace

// Routes carry their next hops themselves: when an interface goes down the kernel takes it out of
// the groups that zebra would share among routes, and zebra (8.4) does not put it back.
std::string zebra_config(const LabNode& node, const std::string& directory) {
  return head(node, directory) + "no zebra nexthop kernel enable\n";
}

std::string bfdd_config(const LabNode& node, const std::string& directory,
                        const FrrSettings& settings) {
  return head(node, directory) + bfd_profile(settings);
}

std::string bgpd_config(const LabPlan& plan, LabNodeId id, const std::string& directory,
                        const FrrSettings& settings) {
  const LabNode& node = plan.nodes[id];
  std::string out = head(node, directory);
  line(out, "router bgp {}", node.asn);
  line(out, " bgp router-id {}", ipv4_text(node.loopback));
  line(out, " no bgp ebgp-requires-policy");
  line(out, " bgp log-neighbor-changes");
  line(out, " bgp network import-check");  // a NIC whose cable is down is not announced
  line(out, " timers bgp 1 3");
  line(out, " coalesce-time 50");
  line(out, " bgp bestpath as-path multipath-relax");
  line(out, " neighbor FABRIC peer-group");
  line(out, " neighbor FABRIC timers connect 1");
  line(out, " neighbor FABRIC advertisement-interval 0");
  if (settings.bfd) line(out, " neighbor FABRIC bfd profile weft");
  add_neighbours(out, plan, node);
  line(out, " address-family ipv4 unicast");
  line(out, "  maximum-paths {}", std::max(settings.paths_max, 1u));
  line(out, "  neighbor FABRIC activate");
  add_networks(out, plan, node);
  line(out, " exit-address-family\nexit");
  line(out, "route-map DRAIN permit 10\n set community graceful-shutdown additive\nexit");
  return out;
}

ProcessSpec frr_process(const LabNode& node, std::string_view role, const std::string& directory) {
  const std::string zserv = directory + "/zserv.api";
  ProcessSpec out{
      .role = std::string(role),
      .node = node.name,
      .netns = node.netns,
      .argv = {fmt::format("{}/{}", frr_programs, role), "-P", "0", "-z", zserv, "--vty_socket",
               directory, "-i", fmt::format("{}/{}.pid", directory, role), "-f",
               fmt::format("{}/{}.conf", directory, role)},
      .output = fmt::format("{}/{}.out", directory, role),
      // Daemons that wait for a processor miss their hold time, and whole switches go quiet.
      .niceness = -15};
  if (role == "bfdd") out.argv.insert(out.argv.end(), {"--bfdctl", directory + "/bfdd.sock"});
  // Where root is the only user there is.
  if (is_single_user()) out.argv.insert(out.argv.end(), {"-u", "root", "-g", "root"});
  return out;
}

std::string vty_path(const std::string& directory, std::string_view role) {
  return fmt::format("{}/{}.vty", directory, role);
}

Result<Vty> Vty::connect(const std::string& path, std::chrono::milliseconds patience,
                         std::chrono::milliseconds answer) {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    Result<Fd> socket = connect_once(path);
    if (socket) {
      Vty out(std::move(*socket), answer);
      WEFT_TRY_STATUS(out.run_one("enable"));
      return out;
    }
    if (std::chrono::steady_clock::now() >= deadline) return std::unexpected(socket.error());
    std::this_thread::sleep_for(5ms);
  }
}

Result<std::string> Vty::run(const std::vector<std::string>& commands) {
  std::string out;
  for (const std::string& command : commands) {
    WEFT_TRY(const std::string text, run_one(command));
    out += text;
  }
  return out;
}

// A command ends with a zero byte; the answer with three, and then the status.
Result<std::string> Vty::run_one(const std::string& command) {
  if (send(socket_.get(), command.c_str(), command.size() + 1, MSG_NOSIGNAL) < 0)
    return system_failure("sending to a daemon", errno);
  constexpr std::size_t tail = 4;
  const auto deadline = std::chrono::steady_clock::now() + answer_;
  std::string answer;
  std::array<char, 4096> buffer{};
  const auto complete = [&] {
    return answer.size() >= tail &&
           answer.compare(answer.size() - tail, 3, std::string_view("\0\0\0", 3)) == 0;
  };
  while (!complete()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return fail(Errc::io, {}, fmt::format("a daemon does not respond to {}", quote(command)),
                  "check with weft lab status whether it is hung or stopped");
    WEFT_TRY(const bool ready, wait_readable(socket_, left));
    if (!ready) continue;
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return system_failure("reading from a daemon", errno);
    if (size == 0 || answer.size() > answer_bytes_max)
      return fail(Errc::io, {},
                  fmt::format("a daemon closed the connection while answering {}", quote(command)));
    answer.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const char status = answer.back();
  answer.resize(answer.size() - tail);
  if (status != 0)
    return fail(Errc::value, {}, fmt::format("{} was rejected: {}", quote(command), trim(answer)));
  return answer;
}

std::vector<std::string> drain_switch_commands(const LabPlan& plan, LabNodeId id, DrainStep step) {
  const LabNode& node = plan.nodes[id];
  std::vector<std::string> out{"configure terminal", fmt::format("router bgp {}", node.asn)};
  switch (step) {
    case DrainStep::soft_on:
      out.emplace_back("bgp graceful-shutdown");
      break;
    case DrainStep::hard_on:
      out.emplace_back("neighbor FABRIC shutdown");
      break;
    case DrainStep::hard_off:
      out.emplace_back("no neighbor FABRIC shutdown");
      break;
    case DrainStep::soft_off:
      out.emplace_back("no bgp graceful-shutdown");
      break;
  }
  out.emplace_back("end");
  return out;
}

std::vector<std::string> drain_cable_commands(const LabPlan& plan, LabNodeId id,
                                              const std::vector<EndId>& ends, DrainStep step) {
  std::vector<std::string> out{"configure terminal",
                               fmt::format("router bgp {}", plan.nodes[id].asn)};
  const bool soft = step == DrainStep::soft_on || step == DrainStep::soft_off;
  const bool off = step == DrainStep::soft_off || step == DrainStep::hard_off;
  if (soft) out.emplace_back("address-family ipv4 unicast");
  for (const EndId end : ends)
    out.push_back(fmt::format("{}neighbor {} {}", off ? "no " : "", neighbour(plan, end),
                              soft ? "route-map DRAIN out" : "shutdown"));
  out.emplace_back("end");
  return out;
}

}  // namespace weft::adapt::lab
