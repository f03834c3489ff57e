#include "adapt/lab/up.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "adapt/lab/build.hpp"
#include "adapt/lab/extras.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/parallel.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "base/file.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// More daemons side by side than cores make each of them slower, not all of them faster.
constexpr unsigned daemons_at_once = 4;
constexpr std::chrono::seconds convergence_patience{120};
constexpr std::chrono::milliseconds convergence_poll{20};

// SIGINT and SIGTERM wait while this lives, so that a lab is cleaned up before weft ends.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  // Whether one has come; it is taken then.
  Status check() const {
    const timespec none{};
    if (sigtimedwait(&signals_, nullptr, &none) < 0) return {};
    return fail(Errc::io, {}, "interrupted");
  }

 private:
  sigset_t signals_{}, before_{};
};

// The step that runs, its time, and progress.
class Steps {
 public:
  Steps(UpReport& report, Progress::Show show)
      : report_(report), progress_("weft lab up", 1, show), start_(Clock::now()) {}
  // Ends a step which takes things so far.
  void done(std::string name, double share) {
    const auto now = Clock::now();
    report_.steps.emplace_back(std::move(name),
                               std::chrono::duration<double>(now - start_).count());
    start_ = now;
    progress_.update(share);
  }
  void update(double share) { progress_.update(share); }

 private:
  UpReport& report_;
  Progress progress_;
  Clock::time_point start_;
};

std::unexpected<Error> taken(const std::string& name, std::string_view what) {
  return fail(Errc::infeasible, {"--name", 0, 0}, fmt::format("{} {}", what, weft::quote(name)),
              fmt::format("weft lab down --name {}, or choose another --name", name));
}

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return {};
  return system_failure("making " + path, errno);
}

// The files of the daemons belong to the user that they run as.
Status give_to_frr(const std::string& path) {
  if (is_single_user()) return {};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r("frr", &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr)
    return fail(Errc::unsupported, {}, "user frr does not exist",
                "install the package frr, or use --routing static");
  if (chown(path.c_str(), found->pw_uid, found->pw_gid) != 0)
    return system_failure("giving " + path + " to frr", errno);
  return {};
}

Status prepare_root(const std::string& root) {
  const mode_t mode = root.starts_with("/tmp/") ? 0700 : 0755;
  if (mkdir(root.c_str(), mode) != 0 && errno != EEXIST)
    return system_failure("making " + root, errno);
  return check_state_root();
}

class Builder {
 public:
  Builder(Lab& lab, const UpRequest& request, UpReport& report)
      : lab_(lab),
        request_(request),
        report_(report),
        steps_(report, request.progress),
        routes_(Routes::shortest(lab.plan)) {}

  Status run() {
    WEFT_TRY_STATUS(save_fabric(lab_));
    WEFT_TRY_STATUS(save_lab(lab_));
    WEFT_TRY(report_.warnings, build_nodes(lab_.plan));
    steps_.done("cables", 0.2);
    WEFT_TRY_STATUS(signals_.check());
    WEFT_TRY_STATUS(management());
    const bool frr = lab_.options.routing == Routing::frr;
    WEFT_TRY_STATUS(frr ? start_routing() : write_routes());
    WEFT_TRY_STATUS(await_routes());
    WEFT_TRY_STATUS(check_processes());
    lab_.phase = Phase::running;
    return save_lab(lab_);
  }

 private:
  bool has(Extra extra) const { return extra == Extra::on; }

  // Also where nobody asked for what needs it: it costs little and is where to look from.
  Status management() {
    WEFT_TRY_STATUS(make_node_directories());
    WEFT_TRY_STATUS(build_management(lab_.plan));
    steps_.done("management", 0.25);
    if (has(lab_.options.syslog) || is_single_user()) WEFT_TRY_STATUS(start_keeper());
    if (has(lab_.options.snmp)) {
      WEFT_TRY_STATUS(start_everywhere("snmpd", daemons_at_once));
      steps_.done("snmpd", 0.3);
    }
    return {};
  }

  Status make_node_directories() {
    for (const LabNodeId node : lab_.plan.switches()) {
      const std::string directory = lab_.node_directory(node);
      WEFT_TRY_STATUS(make_directory(directory));
      if (has(lab_.options.snmp))
        WEFT_TRY_STATUS(write_file(directory + "/snmpd.conf", snmpd_config()));
    }
    return {};
  }

  Status start_keeper() {
    const ProcessSpec spec{.role = "keeper",
                           .node = "",
                           .netns = "",
                           .argv = {request_.program, "lab", "keeper", "--name", lab_.options.name},
                           .output = lab_.directory + "/keeper.out"};
    WEFT_TRY(const LabProcess keeper, start_process(spec, lab_.journal()));
    return {};
  }

  Status start_everywhere(std::string_view role, unsigned at_once) {
    return for_each_parallel(lab_.plan.switch_count, at_once, [&](std::size_t i) -> Status {
      WEFT_TRY_STATUS(signals_.check());
      return start_daemon(lab_, LabNodeId(i), role);
    });
  }

  Status start_routing() {
    const FrrSettings settings = frr_settings(lab_, routes_);
    for (const LabNodeId id : lab_.plan.switches()) {
      const std::string directory = lab_.node_directory(id);
      const LabNode& node = lab_.plan.nodes[id];
      WEFT_TRY_STATUS(write_file(directory + "/zebra.conf", zebra_config(node, directory)));
      WEFT_TRY_STATUS(
          write_file(directory + "/bgpd.conf", bgpd_config(lab_.plan, id, directory, settings)));
      if (settings.bfd)
        WEFT_TRY_STATUS(
            write_file(directory + "/bfdd.conf", bfdd_config(node, directory, settings)));
      for (const char* file : {"", "/zebra.conf", "/bgpd.conf", "/bfdd.conf"})
        if (fs::exists(directory + file)) WEFT_TRY_STATUS(give_to_frr(directory + file));
    }
    WEFT_TRY_STATUS(start_everywhere("zebra", daemons_at_once));
    steps_.done("zebra", 0.5);
    if (settings.bfd) WEFT_TRY_STATUS(start_everywhere("bfdd", daemons_at_once));
    WEFT_TRY_STATUS(start_everywhere("bgpd", daemons_at_once));
    if (has(lab_.options.syslog)) WEFT_TRY_STATUS(start_watchdogs(settings));
    steps_.done("bgpd", 0.75);
    return {};
  }

  // Only its log is of use. FRRouting without it is complete enough.
  Status start_watchdogs(const FrrSettings& settings) {
    if (!fs::exists(fmt::format("{}/watchfrr", frr_programs))) return {};
    std::vector<std::string_view> daemons{"zebra", "bgpd"};
    if (settings.bfd) daemons.emplace_back("bfdd");
    for (const LabNodeId id : lab_.plan.switches()) {
      WEFT_TRY_STATUS(signals_.check());
      WEFT_TRY(
          const LabProcess watchdog,
          start_process(watchfrr_process(lab_.plan.nodes[id], lab_.node_directory(id), daemons),
                        lab_.journal()));
    }
    return {};
  }

  Status write_routes() {
    std::vector<LabNodeId> all(lab_.plan.switches().size());
    for (const LabNodeId node : lab_.plan.switches()) all[node.index()] = node;
    return write_static_routes(lab_.plan, routes_, all, RouteWrite::create);
  }

  Status await_routes() {
    std::vector<LabNodeId> left;
    for (const LabNodeId node : lab_.plan.switches()) left.push_back(node);
    const Routes routes = routes_.met_by_traffic(lab_.plan);
    const auto deadline = Clock::now() + convergence_patience;
    for (;;) {
      WEFT_TRY_STATUS(signals_.check());
      WEFT_TRY(const std::size_t missing, count_missing_routes(lab_.plan, routes, left));
      if (missing == 0) break;
      steps_.update(1 - 0.25 * static_cast<double>(left.size()) /
                            static_cast<double>(lab_.plan.switch_count));
      if (Clock::now() > deadline)
        return fail(
            Errc::io, {},
            fmt::format("{} routes on {} switches, {} first, are still incomplete after {} s",
                        missing, left.size(), lab_.plan.nodes[left.front()].name,
                        convergence_patience.count()),
            "the machine may be too busy: try a smaller fabric or --routing static");
      std::this_thread::sleep_for(convergence_poll);
    }
    steps_.done("routes", 1);
    return {};
  }

  // What started well may have ended since, an agent that cannot listen for one.
  Status check_processes() const {
    for (const LabProcess& process : read_journal(lab_.journal()))
      if (!is_alive(process.id))
        return fail(Errc::io, {},
                    fmt::format("{} of {} has exited", process.role,
                                process.node.empty() ? lab_.options.name : process.node),
                    "weft lab doctor shows whether its requirements are met");
    return {};
  }

  Lab& lab_;
  const UpRequest& request_;
  UpReport& report_;
  Steps steps_;
  Routes routes_;
  SignalsHeld signals_;
};

// What FRRouting's daemons leave behind when they are killed.
void remove_crash_logs(const std::vector<LabProcess>& processes) {
  std::error_code ignored;
  for (const LabProcess& process : processes)
    if (process.id.exe.starts_with(frr_programs))
      fs::remove_all(fmt::format("/var/tmp/frr/{}.{}", process.role, process.id.pid), ignored);
  fs::remove("/var/tmp/frr", ignored);  // stays unless it is empty
}

Result<DownReport> remove_all_of(const std::string& name) {
  DownReport out;
  const std::string directory = lab_directory(name);
  const std::vector<LabProcess> processes = read_journal(directory + "/processes");
  out.processes = static_cast<std::size_t>(std::ranges::count_if(
      processes, [](const LabProcess& process) { return is_alive(process.id); }));
  // Without good-byes: nobody is left to hear them, and they would cost seconds.
  WEFT_TRY_STATUS(end_processes(processes, std::chrono::milliseconds(0)));
  remove_crash_logs(processes);
  for (const std::string& netns : list_netns(netns_prefix(name))) {
    WEFT_TRY_STATUS(delete_netns(netns));
    ++out.namespaces;
  }
  std::error_code error;
  out.had_files = fs::remove_all(directory, error) > 0;
  if (error) return system_failure("removing " + directory, error.value());
  fs::remove(state_root(), error);  // stays while it has other labs
  return out;
}

}  // namespace

double UpReport::seconds() const {
  double out = 0;
  for (const auto& [name, seconds] : steps) out += seconds;
  return out;
}

Result<UpReport> bring_up(const model::Fabric& fabric, const UpRequest& request) {
  const std::string& name = request.options.name;
  WEFT_TRY_STATUS(check_lab_name(name));
  Lab lab{.directory = lab_directory(name),
          .options = request.options,
          .fabric = fabric,
          .plan = {},
          .drained = {}};
  WEFT_TRY(lab.plan, make_plan(fabric, {.lab = name, .seeds = request.options.seeds}));
  if (!list_netns(netns_prefix(name)).empty() && !fs::exists(lab.directory))
    return taken(name, "namespaces of an earlier lab remain");
  WEFT_TRY_STATUS(prepare_root(state_root()));
  if (mkdir(lab.directory.c_str(), 0755) != 0)
    return errno == EEXIST ? taken(name, "a lab already exists")
                           : system_failure("making " + lab.directory, errno);
  WEFT_TRY(const Fd lock, lock_lab(lab.directory));
  UpReport report{.switches = lab.plan.switch_count,
                  .hosts = lab.plan.nodes.size() - lab.plan.switch_count,
                  .cables = lab.plan.cables.size(),
                  .steps = {},
                  .warnings = {}};
  Status built = Builder(lab, request, report).run();
  if (built) return report;
  Error error = std::move(built).error();
  if (const auto removed = remove_all_of(name); !removed) error.more.push_back(removed.error());
  return std::unexpected(std::move(error));
}

Result<DownReport> take_down(const std::string& name) {
  WEFT_TRY_STATUS(check_lab_name(name));
  WEFT_TRY_STATUS(check_state_root());
  const std::string directory = lab_directory(name);
  if (!fs::exists(directory)) return remove_all_of(name);
  WEFT_TRY(const Fd lock, lock_lab(directory));
  return remove_all_of(name);
}

}  // namespace weft::adapt::lab
