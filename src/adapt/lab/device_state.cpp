#include "adapt/lab/device_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "adapt/lab/frr.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using port::StatePiece;

constexpr std::uint64_t proc_bytes_max = 4 << 20;

constexpr std::array<std::string_view, 10> sysctls{"net/ipv4/ip_forward",
                                                   "net/ipv4/conf/all/rp_filter",
                                                   "net/ipv4/conf/all/ignore_routes_with_linkdown",
                                                   "net/ipv4/fib_multipath_hash_policy",
                                                   "net/ipv4/fib_multipath_hash_fields",
                                                   "net/ipv4/fib_multipath_hash_seed",
                                                   "net/ipv4/icmp_ratelimit",
                                                   "net/ipv4/icmp_ratemask",
                                                   "net/ipv4/icmp_errors_use_inbound_ifaddr",
                                                   "net/ipv6/conf/all/disable_ipv6"};

// A question to a daemon, and the name of its answer.
struct Question {
  std::string_view piece, command;
};
struct Daemon {
  std::string_view role;
  std::vector<Question> questions;
};
std::vector<Daemon> daemons_of(const Lab& lab, const LabNode& node) {
  if (!node.is_switch() || lab.options.routing != Routing::frr) return {};
  std::vector<Daemon> out{
      {"bgpd",
       {{"bgp_summary", "show bgp summary json"},
        {"bgp_neighbours", "show bgp neighbors json"},
        {"bgp_routes", "show bgp ipv4 unicast json"},
        {"bgpd_config", "show running-config"}}},
      {"zebra", {{"zebra_routes", "show ip route json"}, {"zebra_config", "show running-config"}}}};
  if (lab.options.bfd == Extra::on) out.push_back({"bfdd", {{"bfd_peers", "show bfd peers json"}}});
  return out;
}

StatePiece piece_of(std::string_view name, Result<std::string> text, std::size_t bytes_max) {
  StatePiece out{.name = std::string(name), .text = {}, .error = {}};
  if (!text) {
    out.error = text.error().text();
    return out;
  }
  out.text = std::move(*text);
  cut(out, bytes_max, Keep::begin);
  return out;
}

Result<std::string> interfaces(const Lab& lab, const LabNode& node, Netlink& netlink) {
  WEFT_TRY(const std::vector<LinkState> links, netlink.links());
  nlohmann::json out = nlohmann::json::array();
  for (const LinkState& link : links) {
    nlohmann::json row = {{"interface", link.name},        {"up", link.up},
                          {"carrier", link.carrier},       {"rx_packets", link.rx_packets},
                          {"tx_packets", link.tx_packets}, {"rx_bytes", link.rx_bytes},
                          {"tx_bytes", link.tx_bytes},     {"rx_dropped", link.rx_dropped},
                          {"tx_dropped", link.tx_dropped}, {"rx_errors", link.rx_errors},
                          {"tx_errors", link.tx_errors}};
    for (const EndId end : node.ends)
      if (lab.plan.end(end).interface == link.name) {
        row["link"] = lab.fabric.name(lab.plan.end(end).link);
        row["address"] = ipv4_text(lab.plan.end(end).address);
      }
    out.push_back(std::move(row));
  }
  return out.dump(1);
}

Result<std::string> routes(const LabNode& node, Netlink& netlink) {
  WEFT_TRY(const std::vector<LinkState> links, netlink.links());
  WEFT_TRY(const std::vector<KernelRoute> all, netlink.routes(RouteTables::all));
  std::string out = fmt::format("# {}: destination, table, protocol, type, next hops\n", node.name);
  for (const KernelRoute& route : all) {
    fmt::format_to(std::back_inserter(out), "{}/{} table {} protocol {} type {}",
                   ipv4_text(route.destination), route.prefix_length, route.table, route.protocol,
                   route.type);
    for (const NextHop& hop : route.hops) {
      const auto link = std::ranges::find(links, hop.interface, &LinkState::index);
      fmt::format_to(std::back_inserter(out), " via {} dev {}", ipv4_text(hop.gateway),
                     link == links.end() ? "?" : link->name);
    }
    out += '\n';
  }
  return out;
}

// Files under /proc/thread-self/net: those of the namespace that this thread is in.
Result<std::string> net_files(std::initializer_list<std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) {
    WEFT_TRY(const std::string text,
             read_file(fmt::format("/proc/thread-self/net/{}", name), proc_bytes_max));
    out += fmt::format("# {}\n{}", name, text);
  }
  return out;
}

std::string settings() {
  std::string out;
  for (const std::string_view key : sysctls) {
    const auto value = read_sysctl(key);
    out += fmt::format("{} = {}\n", key, value ? *value : "(" + value.error().what + ")");
  }
  return out;
}

std::vector<StatePiece> of_kernel(const Lab& lab, const LabNode& node, std::size_t bytes_max) {
  std::vector<StatePiece> out;
  const Status done = run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    out.push_back(piece_of("interfaces", interfaces(lab, node, netlink), bytes_max));
    out.push_back(piece_of("routes", routes(node, netlink), bytes_max));
    out.push_back(piece_of("neighbours", net_files({"arp"}), bytes_max));
    out.push_back(piece_of("counters", net_files({"snmp", "netstat", "dev"}), bytes_max));
    out.push_back(piece_of("sysctl", settings(), bytes_max));
    return {};
  });
  if (!done) out.push_back({.name = "kernel", .text = {}, .error = done.error().text()});
  return out;
}

// The last bytes of a file, from the beginning of a line.
StatePiece log_tail(const std::string& path, std::size_t bytes_max) {
  StatePiece out{.name = "log", .text = {}, .error = {}};
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (!file.valid() || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    out.error = system_failure("reading " + path, errno).error().text();
    return out;
  }
  const auto size = static_cast<std::uint64_t>(found.st_size);
  const std::uint64_t wanted = std::min<std::uint64_t>(size, std::uint64_t{bytes_max} + 1);
  out.text.resize(wanted);
  const ssize_t got = pread(file.get(), out.text.data(), wanted, static_cast<off_t>(size - wanted));
  out.text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  cut(out, bytes_max, Keep::end);
  return out;
}

StatePiece processes(const Lab& lab, const LabNode& node, std::size_t bytes_max) {
  std::string out;
  for (const LabProcess& process : read_journal(lab.journal()))
    if (process.node == node.name)
      out += fmt::format("{} {} {}\n", process.role, process.id.pid,
                         is_alive(process.id) ? "runs" : "is gone");
  return piece_of("processes", std::move(out), bytes_max);
}

// Asks one daemon all that it is to be asked; after a silence it is asked nothing more.
std::vector<StatePiece> of_daemon(const std::string& directory, const Daemon& daemon,
                                  Clock::time_point deadline, std::size_t bytes_max) {
  const auto left = [&] {
    return std::max(std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()),
                    Milliseconds(0));
  };
  std::vector<StatePiece> out;
  Result<Vty> vty = Vty::connect(vty_path(directory, daemon.role), Milliseconds(0), left());
  std::string silent = vty ? "" : vty.error().text();
  for (const Question& question : daemon.questions) {
    if (!silent.empty()) {
      out.push_back({.name = std::string(question.piece), .text = {}, .error = silent});
      continue;
    }
    vty->set_answer_patience(left());
    const auto start = Clock::now();
    Result<std::string> answer = vty->run({std::string(question.command)});
    if (!answer && answer.error().code == Errc::io) silent = answer.error().text();
    out.push_back(piece_of(question.piece, std::move(answer), bytes_max));
    out.back().took = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
  }
  return out;
}

}  // namespace

Result<LabDeviceState> LabDeviceState::create(const std::string& lab_name) {
  WEFT_TRY(Lab lab, open_lab(lab_name));
  return LabDeviceState(std::make_unique<const Lab>(std::move(lab)));
}

Result<std::vector<StatePiece>> LabDeviceState::collect(std::string_view device,
                                                        std::chrono::milliseconds patience,
                                                        std::size_t bytes_max) {
  const auto deadline = Clock::now() + patience;
  WEFT_TRY(const LabNodeId id, lab_->plan.find_node(lab_->fabric, {device, {}}));
  const LabNode& node = lab_->plan.nodes[id];
  const std::string directory = lab_->node_directory(id);
  const std::vector<Daemon> daemons = daemons_of(*lab_, node);
  std::vector<std::vector<StatePiece>> answers(daemons.size());
  std::vector<StatePiece> out;
  {
    std::vector<std::jthread> asking;
    for (std::size_t i = 0; i < daemons.size(); ++i)
      asking.emplace_back(
          [&, i] { answers[i] = of_daemon(directory, daemons[i], deadline, bytes_max); });
    out = of_kernel(*lab_, node, bytes_max);
    if (node.is_switch()) {
      out.push_back(processes(*lab_, node, bytes_max));
      if (!daemons.empty()) out.push_back(log_tail(directory + "/frr.log", bytes_max));
    }
  }
  for (std::vector<StatePiece>& some : answers)
    out.insert(out.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  return out;
}

}  // namespace weft::adapt::lab
