#include "adapt/lab/user_namespace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "adapt/lab/netns.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr unsigned cap_net_admin = 12, cap_net_raw = 13, cap_sys_admin = 21;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (const std::string_view line : split(text, '\n'))
    for (const std::string_view word : split(line, ' '))
      if (!word.empty()) out.push_back(word);
  return out;
}

Status put(const std::string& path, std::string_view text) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() ||
      write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_failure("writing " + path, errno);
  return {};
}

Status mount_over(const char* source, const char* target, const char* type, unsigned long flags) {
  if (mount(source, target, type, flags, nullptr) == 0) return {};
  return system_failure(fmt::format("mounting {} on {}", source, target), errno);
}

// FRRouting's daemons insist on a group "frrvty" that has their user as a member.
std::string group_file_with_root(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    out += line;
    if (line.starts_with("frrvty:")) out += line.ends_with(':') ? "root" : ",root";
    out += '\n';
  }
  return out;
}

Status private_files() {
  WEFT_TRY_STATUS(mount_over("none", "/", nullptr, MS_REC | MS_PRIVATE));
  WEFT_TRY_STATUS(mount_over("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV));
  for (const char* directory : {"/run/netns", "/run/tmp"})
    if (mkdir(directory, 0755) != 0) return system_failure(directory, errno);
  WEFT_TRY_STATUS(mount_over("/run/tmp", "/var/tmp", nullptr, MS_BIND));
  if (const auto groups = read_file("/etc/group", 1 << 20)) {
    WEFT_TRY_STATUS(write_file("/run/group", group_file_with_root(*groups)));
    WEFT_TRY_STATUS(mount_over("/run/group", "/etc/group", nullptr, MS_BIND));
  }
  return {};
}

}  // namespace

bool is_privileged() {
  const auto status = read_file("/proc/self/status", 65'536);
  if (!status) return false;
  for (const std::string_view line : split(*status, '\n')) {
    constexpr std::string_view key = "CapEff:";
    if (!line.starts_with(key)) continue;
    const std::string_view digits = trim(line.substr(key.size()));
    std::uint64_t caps = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), caps, 16);
    const auto has = [&](unsigned cap) { return ((caps >> cap) & 1) != 0; };
    return has(cap_net_admin) && has(cap_net_raw) && has(cap_sys_admin);
  }
  return false;
}

bool is_single_user() {
  const auto map = read_file("/proc/self/uid_map", 4096);
  if (!map) return false;
  const auto words = words_of(*map);
  return words.size() == 3 && words[2] == "1";
}

uid_t outer_user() {
  const uid_t own = geteuid();
  const auto map = read_file("/proc/self/uid_map", 4096);
  if (!map) return own;
  const auto words = words_of(*map);
  for (std::size_t i = 0; i + 2 < words.size(); i += 3) {
    std::array<std::uint64_t, 3> row{};
    for (std::size_t k = 0; k < 3; ++k)
      std::from_chars(words[i + k].data(), words[i + k].data() + words[i + k].size(), row[k]);
    if (own >= row[0] && own - row[0] < row[2]) return static_cast<uid_t>(row[1] + own - row[0]);
  }
  return own;
}

Status enter_new_user_namespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
    return system_failure(
        "unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET)", errno,
        "check the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone and "
        "kernel.apparmor_restrict_unprivileged_userns, or run as root");
  WEFT_TRY_STATUS(put("/proc/self/setgroups", "deny"));
  WEFT_TRY_STATUS(put("/proc/self/uid_map", fmt::format("0 {} 1", user)));
  WEFT_TRY_STATUS(put("/proc/self/gid_map", fmt::format("0 {} 1", group)));
  return private_files();
}

Status enter_user_namespace_of(const ProcessId& keeper) {
  if (!is_alive(keeper))
    return fail(Errc::io, {}, fmt::format("the lab's keeper (process {}) has exited", keeper.pid),
                "the lab ended with it: run weft lab down");
  for (const auto& [name, type] : {std::pair("user", CLONE_NEWUSER), std::pair("mnt", CLONE_NEWNS),
                                   std::pair("net", CLONE_NEWNET)}) {
    const std::string path = fmt::format("/proc/{}/ns/{}", keeper.pid, name);
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid() || setns(fd.get(), type) != 0) return system_failure("entering " + path, errno);
  }
  return {};
}

}  // namespace weft::adapt::lab
