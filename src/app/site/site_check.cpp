#include "app/site/site_check.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "app/site/probe_plan.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

namespace weft::app {
namespace {

SiteCheck check_file(const SiteNeed& need) {
  SiteCheck out{.what = fmt::format("{} {}", need.what, need.path), .problem = {}, .advice = {}};
  if (::access(need.path.c_str(), R_OK) != 0) {
    out.problem = std::strerror(errno);
    out.advice = errno == ENOENT ? "create it, or correct the path" : "give this user the right";
  }
  return out;
}

SiteCheck check_program(const std::string& what, const std::string& path) {
  SiteCheck out{.what = fmt::format("{} {}", what, path), .problem = {}, .advice = {}};
  if (::access(path.c_str(), X_OK) != 0) {
    out.problem = std::strerror(errno);
    out.advice = "install it, or correct the path";
  }
  return out;
}

void explain(SiteCheck& check, int error) {
  check.problem = std::strerror(error);
  if (error == EACCES)
    check.advice = "ports below 1024 need CAP_NET_BIND_SERVICE";
  else if (error == EADDRINUSE)
    check.advice = "another program listens there: choose another port, or stop it";
  else if (error == EADDRNOTAVAIL)
    check.advice = "this machine does not have that address";
}

SiteCheck check_port(const SitePort& port) {
  const bool is_tcp = port.protocol == SitePort::Protocol::tcp;
  SiteCheck out{.what = fmt::format("{} {} {}", port.what, is_tcp ? "tcp" : "udp", port.address),
                .problem = {},
                .advice = {}};
  const std::size_t colon = port.address.rfind(':');
  if (colon == std::string::npos) {
    out.problem = "no port is given";
    out.advice = "write HOST:PORT";
    return out;
  }
  std::string host = port.address.substr(0, colon);
  const std::string service = port.address.substr(colon + 1);
  if (const auto number = parse_count({service, {}}); !number || *number < 1 || *number > 65535) {
    out.problem = fmt::format("{} is not a port", quote(service));
    out.advice = "write a number from 1 to 65535";
    return out;
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = is_tcp ? SOCK_STREAM : SOCK_DGRAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (failed != 0) {
    out.problem = ::gai_strerror(failed);
    out.advice = "write HOST:PORT";
    return out;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  const Fd socket(::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  const int on = 1;  // as servers do: a port in TIME_WAIT is free
  if (is_tcp && socket.valid())
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket.valid() || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      (is_tcp && ::listen(socket.get(), 1) != 0))
    explain(out, errno);
  return out;
}

SiteCheck check_state(const std::string& folder) {
  SiteCheck out{.what = "state " + folder, .problem = {}, .advice = {}};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    out.problem = error ? error.message() : std::strerror(errno);
    out.advice = "set state: to a folder that this user may write";
  }
  return out;
}

// The folder of the store, which may be a database elsewhere.
void check_store(const Site& site, std::vector<SiteCheck>& out) {
  if (site.store.find("://") != std::string::npos || site.store.find('=') != std::string::npos)
    return;
  const std::filesystem::path folder = std::filesystem::path(site.store).parent_path();
  if (folder.empty() || folder == site.state || ::access(folder.c_str(), W_OK | X_OK) == 0) return;
  out.push_back(
      {"store " + site.store, std::strerror(errno),
       fmt::format("create {}, or give this user the right to write there", folder.string())});
}

void check_feeds(const Site& site, const model::Fabric& fabric, std::vector<SiteCheck>& out) {
  for (const SiteFeed& feed : site.feeds) {
    const auto option = std::ranges::find(feed.arguments, "--device");
    if (option == feed.arguments.end()) continue;
    const std::string& device = *std::next(option);
    if (const auto node = fabric.find_node({device, {}}); !node)
      out.push_back(
          {fmt::format("{}.device {}", feed.name, device), node.error().what,
           node.error().hint.empty() ? "name a device of the fabric" : node.error().hint});
  }
}

void check_probes(const Site& site, const model::Fabric& fabric, std::vector<SiteCheck>& out) {
  const SiteProbes& probes = *site.probes;
  if (!probes.at.empty()) out.push_back(check_program("probes.at", probes.at.front()));
  if (!probes.copy.empty()) out.push_back(check_program("probes.copy", probes.copy.front()));
  if (probes.at.empty() && !probes.program.empty())
    out.push_back(check_program("probes.program", probes.program));
  const auto complain = [&](const Error& error) {
    out.push_back({error.where.file.empty() ? "probes" : error.where.file, error.what, error.hint});
  };
  const auto hosts = probe_hosts(fabric, probes);
  if (!hosts) return complain(hosts.error());
  // A lab's addresses are those of the lab, which is asked later.
  if (!site.lab.empty() && probes.addresses.empty()) return;
  if (!probes.addresses.empty() && ::access(probes.addresses.c_str(), R_OK) != 0) return;
  const auto addresses = read_addresses(fabric, probes.addresses);
  if (!addresses) return complain(addresses.error());
  for (const model::NodeId host : *hosts)
    for (const model::NodeId nic : fabric.nics_of(host))
      if (!addresses->contains(nic))
        out.push_back({fmt::format("address of {}", fabric.name(nic)), "unknown",
                       fmt::format("add it to {}", probes.addresses)});
}

}  // namespace

std::vector<SiteCheck> check_site(const Site& site, const model::Fabric& fabric) {
  std::vector<SiteCheck> out;
  for (const SiteNeed& need : site.files) out.push_back(check_file(need));
  for (const SitePort& port : site.ports) out.push_back(check_port(port));
  out.push_back(check_state(site.state));
  check_store(site, out);
  check_feeds(site, fabric, out);
  if (site.probes) check_probes(site, fabric, out);
  return out;
}

}  // namespace weft::app
