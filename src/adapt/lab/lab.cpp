#include "adapt/lab/lab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapt/lab/build.hpp"
#include "adapt/lab/extras.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "base/config.hpp"
#include "base/file.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

constexpr int format_version = 1;
constexpr int lock_tries = 50;
constexpr std::chrono::milliseconds lock_pause{10};
// Detection in 0.3 s, up to as many sessions as two cores stand while the lab comes up.
constexpr std::uint32_t bfd_fast_ms = 100, bfd_slow_ms = 300;
constexpr std::size_t bfd_fast_cables_max = 160;

json to_json(const Lab& lab) {
  const LabOptions& o = lab.options;
  return {{"version", format_version},
          {"name", o.name},
          {"phase", lab.phase == Phase::running ? "running" : "starting"},
          {"routing", o.routing == Routing::frr ? "frr" : "static"},
          {"bfd", o.bfd == Extra::on},
          {"snmp", o.snmp == Extra::on},
          {"syslog", o.syslog == Extra::on},
          {"equal_seeds", o.seeds == HashSeeds::equal},
          {"drained", lab.drained}};
}

Extra extra_of(const json& root, const char* key) {
  return root.at(key).get<bool>() ? Extra::on : Extra::off;
}

Status read_json(const std::string& path, Lab& lab) {
  WEFT_TRY(const std::string text, read_file(path, 16 << 20));
  try {
    const json root = json::parse(text);
    if (root.at("version").get<int>() != format_version)
      return fail(Errc::parse, {path, 0, 0}, "another version of weft wrote this lab",
                  "take it down with that version");
    LabOptions& o = lab.options;
    o.name = root.at("name").get<std::string>();
    o.routing = root.at("routing") == "frr" ? Routing::frr : Routing::static_routes;
    o.bfd = extra_of(root, "bfd");
    o.snmp = extra_of(root, "snmp");
    o.syslog = extra_of(root, "syslog");
    o.seeds = root.at("equal_seeds").get<bool>() ? HashSeeds::equal : HashSeeds::distinct;
    lab.phase = root.at("phase") == "running" ? Phase::running : Phase::starting;
    lab.drained = root.at("drained").get<std::vector<std::string>>();
  } catch (const json::exception& error) {
    return fail(Errc::parse, {path, 0, 0}, error.what(),
                "the lab's files are damaged: run weft lab down, then up");
  }
  return {};
}

// Daemons go on past lines of their configuration that they do not understand, and only log them.
Status check_config(const LabNode& node, std::string_view role, const std::string& directory) {
  const auto log = read_file(directory + "/frr.log", 64 << 20);
  const std::size_t at = log ? log->find(" on config line ") : std::string::npos;
  if (at == std::string::npos) return {};
  const std::size_t begin = log->rfind('\n', at) + 1;
  return fail(Errc::unsupported, {},
              fmt::format("{} of {} rejected its configuration: {}", role, node.name,
                          std::string_view(*log).substr(begin, log->find('\n', at) - begin)),
              "weft lab doctor shows which version of FRRouting is installed");
}

std::unexpected<Error> no_such_lab(const std::string& name) {
  const std::vector<std::string> others = list_labs();
  return fail(Errc::unknown, {}, fmt::format("lab {} does not exist", weft::quote(name)),
              others.empty() ? "bring one up with weft lab up FABRIC"
                             : fmt::format("existing labs: {}", fmt::join(others, ", ")));
}

}  // namespace

std::string Lab::node_directory(LabNodeId node) const {
  return fmt::format("{}/{}", directory,
                     plan.nodes[node].netns.substr(netns_prefix(plan.lab).size()));
}

std::string state_root() {
  if (is_privileged() && !is_single_user()) return "/run/weft-lab";
  return fmt::format("/tmp/weft-lab-{}", outer_user());
}

std::string lab_directory(const std::string& name) {
  return fmt::format("{}/{}", state_root(), name);
}

Status check_state_root() {
  const std::string root = state_root();
  struct stat found{};
  if (lstat(root.c_str(), &found) != 0)
    return errno == ENOENT ? Status{} : system_failure(root, errno);
  if (S_ISDIR(found.st_mode) && found.st_uid == geteuid()) return {};
  return fail(Errc::io, {}, root + " does not belong to this user",
              "remove it, or ask its owner to");
}

std::vector<std::string> list_labs() {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(state_root(), error), end; !error && it != end;
       it.increment(error))
    out.push_back(it->path().filename().string());
  std::ranges::sort(out);
  return out;
}

Result<Fd> lock_lab(const std::string& directory) {
  Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return system_failure("opening " + directory, errno);
  // A child that a killed `up` was just starting holds the lock for some milliseconds more.
  for (int tries = 0; tries < lock_tries; ++tries) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) return system_failure("locking " + directory, errno);
    std::this_thread::sleep_for(lock_pause);
  }
  return fail(Errc::infeasible, {}, "another weft command is using this lab",
              "wait until it is done, or stop it");
}

Status save_lab(const Lab& lab) {
  return write_file(lab.directory + "/lab.json", to_json(lab).dump(2) + "\n");
}

Status save_fabric(const Lab& lab) {
  return write_file(lab.directory + "/fabric.yaml", model::to_fabric_yaml(lab.fabric));
}

Result<Lab> open_lab(const std::string& name) {
  WEFT_TRY_STATUS(check_lab_name(name));
  WEFT_TRY_STATUS(check_state_root());
  Lab out{.directory = lab_directory(name), .options = {}, .fabric = {}, .plan = {}, .drained = {}};
  std::error_code ignored;
  if (!std::filesystem::exists(out.directory, ignored)) return no_such_lab(name);
  WEFT_TRY_STATUS(read_json(out.directory + "/lab.json", out));
  WEFT_TRY(const Config file, load_yaml(out.directory + "/fabric.yaml"));
  const Config* section = file.find("fabric");
  if (section == nullptr)
    return fail(Errc::parse, {out.directory + "/fabric.yaml", 0, 0}, "it contains no fabric",
                "the lab's files are damaged: run weft lab down, then up");
  WEFT_TRY(out.fabric, model::read_fabric_nodes(*section));
  WEFT_TRY(out.plan, make_plan(out.fabric, {.lab = name, .seeds = out.options.seeds}));
  return out;
}

Result<LabProcess> find_process(const Lab& lab, LabNodeId node, std::string_view role) {
  const std::vector<LabProcess> all = read_journal(lab.journal());
  const std::string& name = lab.plan.nodes[node].name;
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    if (it->node == name && it->role == role) return *it;
  return fail(Errc::unknown, {}, fmt::format("{} does not run {}", name, role),
              lab.options.routing == Routing::static_routes
                  ? "this lab has static routes: bring it up with --routing frr"
                  : "");
}

Status start_daemon(const Lab& lab, LabNodeId node, std::string_view role) {
  const std::string directory = lab.node_directory(node);
  if (role == "snmpd") {
    WEFT_TRY(const LabProcess agent,
             start_process(snmpd_process(lab.plan.nodes[node], directory), lab.journal()));
    return {};
  }
  // A daemon that was killed leaves its socket, and the next would be taken for ready too early.
  std::error_code ignored;
  std::filesystem::remove(vty_path(directory, role), ignored);
  WEFT_TRY(const LabProcess process,
           start_process(frr_process(lab.plan.nodes[node], role, directory), lab.journal()));
  const Result<Vty> ready =
      Vty::connect(vty_path(directory, role), std::chrono::milliseconds(30'000));
  if (ready) return check_config(lab.plan.nodes[node], role, directory);
  const auto said = read_file(fmt::format("{}/{}.out", directory, role), 65'536);
  return fail(Errc::io, {},
              fmt::format("{} of {} did not come up: {}", role, lab.plan.nodes[node].name,
                          said && !said->empty() ? *said : ready.error().what),
              "weft lab doctor shows whether FRRouting is complete");
}

FrrSettings frr_settings(const Lab& lab, const Routes& routes) {
  std::size_t cables = 0, most = 1;
  for (const LabCable& cable : lab.plan.cables) cables += cable.to_host ? 0 : 1;
  for (const LabNodeId node : lab.plan.switches())
    for (std::size_t group = 0; group < routes.groups().size(); ++group)
      most = std::max(most, routes.next_hops(node, group).size());
  return {.bfd = lab.options.bfd == Extra::on,
          .bfd_interval_ms = cables <= bfd_fast_cables_max ? bfd_fast_ms : bfd_slow_ms,
          .paths_max = static_cast<std::uint32_t>(most)};
}

Without without_of(const Lab& lab) {
  Without out;
  for (const std::string& name : lab.drained) {
    if (const auto node = lab.plan.find_node(lab.fabric, {name, {}})) {
      out.nodes.push_back(*node);
    } else if (const auto cable = lab.plan.find_cable(lab.fabric, {name, {}})) {
      out.cables.push_back(*cable);
    }
  }
  return out;
}

Status restore_interface(const Lab& lab, EndId end) {
  const Without without = without_of(lab);
  if (lab.options.routing == Routing::frr) return restore_end(lab.plan, end, nullptr, without);
  const Routes routes = Routes::shortest(lab.plan, without);
  return restore_end(lab.plan, end, &routes, without);
}

}  // namespace weft::adapt::lab
