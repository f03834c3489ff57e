#include "adapt/lab/doctor.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "adapt/lab/extras.hpp"
#include "adapt/lab/frr.hpp"
#include "adapt/lab/injector.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "os/error.hpp"
#include "os/process.hpp"
#include "os/run_program.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

constexpr std::size_t output_bytes_max = 65'536;

Feature tried(std::string name, Need need, const Status& status, std::string advice) {
  return {.name = std::move(name),
          .need = need,
          .works = status.has_value(),
          .detail = status ? "" : status.error().what,
          .advice = std::move(advice)};
}

// Runs `work` in a child process and returns what it writes, or nothing where it died.
std::optional<std::string> in_child(const std::function<std::string()>& work) {
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return std::nullopt;
  const pid_t pid = fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    const std::string text = work();
    const bool whole =
        write(pipe->write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(whole ? 0 : 1);
  }
  pipe->write.reset();
  std::string out;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 1; size > 0 && out.size() < output_bytes_max;) {
    size = read(pipe->read.get(), buffer.data(), buffer.size());
    if (size > 0) out.append(buffer.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(out) : std::nullopt;
}

// The first line that a program prints with one argument.
std::string version_of(const std::string& program, const char* argument) {
  const auto outcome = run_program({.argv = {program, argument}});
  if (!outcome) return {};
  const std::string_view text = trim(outcome->output.empty() ? outcome->errors : outcome->output);
  return std::string(text.substr(0, text.find('\n')));
}

Feature program(std::string name, Need need, const std::vector<std::string>& paths,
                const char* argument, std::string advice) {
  Feature out{.name = std::move(name),
              .need = need,
              .works = true,
              .detail = {},
              .advice = std::move(advice)};
  for (const std::string& path : paths) {
    if (access(path.c_str(), X_OK) == 0) continue;
    out.works = false;
    out.detail = fmt::format("{}: {}", path, errno_text(errno));
    return out;
  }
  out.detail = version_of(paths.back(), argument);
  return out;
}

// --- What is tried inside the throw-away namespaces.

Status try_veth() {
  WEFT_TRY(Netlink netlink, Netlink::open("veth"));
  const Fd own(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  WEFT_TRY_STATUS(netlink.add_veth({"weft-a", {2, 0, 0, 0, 0, 1}, own.get()},
                                   {"weft-b", {2, 0, 0, 0, 0, 2}, own.get()}));
  return netlink.flush();
}

Status try_named_netns() {
  WEFT_TRY_STATUS(create_netns("weft-doctor"));
  return delete_netns("weft-doctor");
}

Status try_packet_socket() {
  const Fd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  return fd.valid() ? Status{} : system_failure("socket(AF_PACKET)", errno);
}

Status try_nft_egress() {
  WEFT_TRY(Nft nft, Nft::here());
  WEFT_TRY_STATUS(
      nft.run("add table netdev weft\n"
              "add chain netdev weft out { type filter hook egress device \"lo\" priority 0; }\n"
              "add rule netdev weft out numgen random mod 100 < 1 counter drop\n"
              "delete table netdev weft\n"));
  return {};
}

Status try_bpf() {
  const std::array<bpf_insn, 2> code{{
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  }};
  const std::string licence = "GPL";
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  load.insn_cnt = code.size();
  load.insns = reinterpret_cast<std::uintptr_t>(code.data());
  load.license = reinterpret_cast<std::uintptr_t>(licence.c_str());
  const Fd fd(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load)));
  return fd.valid() ? Status{} : system_failure("loading a BPF program", errno);
}

Status try_tun() {
  const Fd fd(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return system_failure("/dev/net/tun", errno);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) return system_failure("TUNSETIFF", errno);
  return {};
}

Status try_multipath_fields() {
  WEFT_TRY_STATUS(write_sysctl("net/ipv4/fib_multipath_hash_policy", "3"));
  return write_sysctl("net/ipv4/fib_multipath_hash_fields", "0x37");
}

// Everything that needs the namespaces; the process is one of its own and ends afterwards.
std::vector<Feature> try_inside() {
  const auto qdisc = [](const char* kind) -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(kind));
    return netlink.try_queue_discipline(kind);
  };
  return {
      tried("netns", Need::lab, try_named_netns(), "named network namespaces (CONFIG_NET_NS)"),
      tried("veth", Need::lab, try_veth(), "cables (CONFIG_VETH)"),
      tried("multipath_fields", Need::lab, try_multipath_fields(),
            "ECMP by the 5-tuple alone; needs Linux 5.12"),
      tried("multipath_seed", Need::option, write_sysctl("net/ipv4/fib_multipath_hash_seed", "7"),
            "a hash of its own for every switch; needs Linux 6.11, else tiers polarise"),
      tried("nft_egress", Need::option, try_nft_egress(),
            "faults: silent loss and the wire; needs Linux 5.16 with CONFIG_NETFILTER_EGRESS"),
      tried("packet_socket", Need::option, try_packet_socket(),
            "faults: the wire, for delay, corruption, reordering (CONFIG_PACKET)"),
      tried("tbf", Need::option, qdisc("tbf"), "faults: a slower link (CONFIG_NET_SCH_TBF)"),
      tried("netem", Need::not_used, qdisc("netem"), "weft plays its faults without it"),
      tried("bpf", Need::not_used, try_bpf(), "weft plays its faults without it"),
      tried("tun", Need::not_used, try_tun(), "weft plays its faults without it"),
  };
}

Status enter_throw_away(Mode mode) {
  if (mode == Mode::user_namespace) return enter_new_user_namespace();
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
    return system_failure("unshare(CLONE_NEWNET | CLONE_NEWNS)", errno);
  // Names made here must not be seen, nor stay, outside.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, nullptr) != 0)
    return system_failure("mounting a tmpfs on /run", errno);
  return {};
}

json to_json(const Feature& feature) {
  constexpr std::array<std::string_view, 3> needs{"lab", "option", "not used"};
  return {{"name", feature.name},
          {"need", needs[static_cast<std::size_t>(feature.need)]},
          {"works", feature.works},
          {"detail", feature.detail},
          {"advice", feature.advice}};
}

// What entering fails with goes first, on a line of its own.
std::string probe_as_text(Mode mode) {
  if (const Status entered = enter_throw_away(mode); !entered)
    return entered.error().what + "\n" + entered.error().hint;
  json out = json::array();
  for (const Feature& feature : try_inside()) {
    json row = to_json(feature);
    row["need"] = static_cast<int>(feature.need);
    out.push_back(std::move(row));
  }
  return "\n" + out.dump();
}

// The features, or as only one the reason why there are none.
std::vector<Feature> probe(Mode mode, std::string name, std::string advice) {
  const auto text = in_child([mode] { return probe_as_text(mode); });
  if (!text) return {{std::move(name), Need::lab, false, "the child process died", advice}};
  const std::size_t end = text->find('\n');
  const std::string rest = text->substr(std::min(text->size(), end + 1));
  if (end != 0)
    return {
        {std::move(name), Need::lab, false, text->substr(0, end), rest.empty() ? advice : rest}};
  std::vector<Feature> out{{std::move(name), Need::lab, true, "", advice}};
  const json list = json::parse(rest, nullptr, false);
  if (!list.is_array()) return out;
  for (const json& row : list)
    out.push_back({.name = row.value("name", ""),
                   .need = static_cast<Need>(row.value("need", 0)),
                   .works = row.value("works", false),
                   .detail = row.value("detail", ""),
                   .advice = row.value("advice", "")});
  return out;
}

Feature neighbour_table() {
  const auto most = read_sysctl("net/ipv4/neigh/default/gc_thresh3");
  return {.name = "neighbours",
          .need = Need::option,
          .works = most.has_value(),
          .detail = most ? "gc_thresh3 = " + *most : most.error().what,
          .advice = "weft's permanent entries do not count against it"};
}

// For who is not root on this machine.
Feature user_namespaces() {
  const auto text = in_child([] {
    const Status entered = enter_new_user_namespace();
    return entered ? std::string() : entered.error().text();
  });
  return {.name = "user_namespace",
          .need = Need::not_used,
          .works = text && text->empty(),
          .detail = text.value_or("the child process died"),
          .advice = "labs of non-root users"};
}

void add_programs(std::vector<Feature>& features) {
  const std::string directory(frr_programs);
  features.push_back(program("frr", Need::option, {directory + "/zebra", directory + "/bgpd"},
                             "--version", "BGP; install the package frr, or use --routing static"));
  features.push_back(program("bfdd", Need::option, {directory + "/bfdd"}, "--version",
                             "--bfd; install the package frr"));
  const std::string agent = snmpd_path();
  features.push_back(program("snmpd", Need::option, {agent.empty() ? "/usr/sbin/snmpd" : agent},
                             "--version", "--snmp; install the package snmpd"));
}

}  // namespace

std::string_view to_text(Mode mode) {
  constexpr std::array<std::string_view, 3> names{"direct", "user namespace", "none"};
  return names[static_cast<std::size_t>(mode)];
}

bool Diagnosis::has(std::string_view feature) const {
  const auto it = std::ranges::find(features, feature, &Feature::name);
  return it != features.end() && it->works;
}

bool Diagnosis::can_lab() const {
  return mode != Mode::none && std::ranges::all_of(features, [](const Feature& feature) {
           return feature.works || feature.need != Need::lab;
         });
}

std::string_view Diagnosis::loss_injector() const { return has("nft_egress") ? "nft" : "none"; }

std::string_view Diagnosis::delay_injector() const {
  return has("nft_egress") && has("packet_socket") ? "wire" : "none";
}

std::string Diagnosis::why_not() const {
  std::string out;
  for (const Feature& feature : features)
    if (!feature.works && feature.need == Need::lab)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", feature.name, feature.detail);
  return out;
}

Diagnosis diagnose() {
  Diagnosis out;
  const std::string advice = "separate namespaces, mounts and interfaces";
  if (is_privileged()) {
    out.features = probe(Mode::direct, "privileges", "root's " + advice);
    if (out.features.front().works) {
      out.mode = Mode::direct;
      out.features.push_back(user_namespaces());
    }
  }
  if (out.mode == Mode::none) {
    std::vector<Feature> inside =
        probe(Mode::user_namespace, "user_namespace", "for non-root users: " + advice);
    if (inside.front().works) out.mode = Mode::user_namespace;
    out.features = std::move(inside);
  }
  add_programs(out.features);
  out.features.push_back(neighbour_table());
  return out;
}

std::string to_json(const Diagnosis& diagnosis) {
  json features = json::array();
  for (const Feature& feature : diagnosis.features) features.push_back(to_json(feature));
  return json{{"mode", to_text(diagnosis.mode)},
              {"static_routes", diagnosis.can_lab()},
              {"frr", diagnosis.can_frr()},
              {"loss_injector", diagnosis.loss_injector()},
              {"delay_injector", diagnosis.delay_injector()},
              {"features", features}}
      .dump(2);
}

}  // namespace weft::adapt::lab
