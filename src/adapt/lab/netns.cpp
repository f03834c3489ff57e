#include "adapt/lab/netns.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "adapt/lab/parallel.hpp"
#include "base/check.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr const char* own_netns = "/proc/thread-self/ns/net";

std::string path_of(const std::string& name) { return fmt::format("{}/{}", netns_directory, name); }

std::string privilege_hint(int error) {
  return error == EPERM || error == EACCES
             ? "run as root, or check with `weft lab doctor` what this machine allows"
             : "";
}

// The directory must be a shared mount, so that unmounting a name here unmounts it in other mount
// namespaces too; else the kernel would keep the network namespace alive.
Status prepare_directory() {
  const std::string directory(netns_directory);
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return system_failure("mkdir " + directory, errno, privilege_hint(errno));
  if (mount("", directory.c_str(), "none", MS_SHARED | MS_REC, nullptr) == 0) return {};
  if (errno != EINVAL)
    return system_failure("sharing the mount " + directory, errno, privilege_hint(errno));
  if (mount(directory.c_str(), directory.c_str(), "none", MS_BIND | MS_REC, nullptr) != 0 ||
      mount("", directory.c_str(), "none", MS_SHARED | MS_REC, nullptr) != 0)
    return system_failure("mounting " + directory, errno, privilege_hint(errno));
  return {};
}

// On a thread that may leave its namespace for ever.
Status create_here(const std::string& name) {
  const std::string path = path_of(name);
  const Fd file(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0));
  if (!file.valid())
    return system_failure("creating the namespace " + name, errno,
                          errno == EEXIST ? "the name is in use" : privilege_hint(errno));
  int error = unshare(CLONE_NEWNET) == 0 ? 0 : errno;
  if (error == 0 && mount(own_netns, path.c_str(), "none", MS_BIND, nullptr) != 0) error = errno;
  if (error == 0) return {};
  unlink(path.c_str());
  return system_failure("creating the namespace " + name, error, privilege_hint(error));
}

std::string sysctl_path(std::string_view key) { return fmt::format("/proc/sys/{}", key); }

std::unexpected<Error> sysctl_failure(std::string_view key, int error) {
  if (error == ENOENT)
    return fail(Errc::unsupported, {}, fmt::format("this kernel has no setting {}", key));
  return system_failure(sysctl_path(key), error, privilege_hint(error));
}

}  // namespace

Status create_netns(const std::string& name) { return create_netns(std::span(&name, 1), 1); }

Status create_netns(std::span<const std::string> names, unsigned threads) {
  WEFT_TRY_STATUS(prepare_directory());
  return for_each_parallel(names.size(), threads,
                           [&](std::size_t i) { return create_here(names[i]); });
}

Status delete_netns(const std::string& name) {
  const std::string path = path_of(name);
  // A name whose mount never came about is a plain file.
  if (umount2(path.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT)
    return system_failure("unmounting " + path, errno, privilege_hint(errno));
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return system_failure("removing " + path, errno, privilege_hint(errno));
  return {};
}

std::vector<std::string> list_netns(std::string_view prefix) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(netns_directory, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(prefix)) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

Result<Fd> open_netns(const std::string& name) {
  Fd fd(open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == ENOENT) return fail(Errc::unknown, {}, "no such namespace: " + name);
  return system_failure("opening " + path_of(name), errno, privilege_hint(errno));
}

Result<InNetns> InNetns::enter(const std::string& name) {
  WEFT_TRY(const Fd there, open_netns(name));
  Fd back(open(own_netns, O_RDONLY | O_CLOEXEC));
  if (!back.valid()) return system_failure(own_netns, errno);
  if (setns(there.get(), CLONE_NEWNET) != 0)
    return system_failure("entering the namespace " + name, errno, privilege_hint(errno));
  return InNetns(std::move(back));
}

InNetns::~InNetns() {
  // Going on in a namespace nobody expects would be worse than to stop.
  if (back_.valid()) WEFT_CHECK(setns(back_.get(), CLONE_NEWNET) == 0);
}

Status run_in_netns(const std::string& name, const std::function<Status()>& work) {
  return run_in_each_netns(std::span(&name, 1), 1, [&](std::size_t) { return work(); });
}

Status run_in_each_netns(std::span<const std::string> names, unsigned threads,
                         const std::function<Status(std::size_t)>& work) {
  return for_each_parallel(names.size(), threads, [&](std::size_t i) -> Status {
    WEFT_TRY(const Fd there, open_netns(names[i]));
    // The thread ends after its share, so it needs no way back.
    if (setns(there.get(), CLONE_NEWNET) != 0)
      return system_failure("entering the namespace " + names[i], errno, privilege_hint(errno));
    return work(i);
  });
}

Result<Fd> socket_in_netns(const std::string& name, int domain, int type, int protocol) {
  Fd out;
  WEFT_TRY_STATUS(run_in_netns(name, [&]() -> Status {
    out = Fd(socket(domain, type | SOCK_CLOEXEC, protocol));
    if (!out.valid())
      return system_failure("creating a socket in " + name, errno, privilege_hint(errno));
    return {};
  }));
  return out;
}

Result<LinkWatch> watch_links(const std::string& netns) {
  WEFT_TRY(const InNetns inside, InNetns::enter(netns));
  return LinkWatch::open();
}

Status write_sysctl(std::string_view key, std::string_view value) {
  const Fd file(open(sysctl_path(key).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return sysctl_failure(key, errno);
  if (write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return sysctl_failure(key, errno);
  return {};
}

Result<std::string> read_sysctl(std::string_view key) {
  const Fd file(open(sysctl_path(key).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return sysctl_failure(key, errno);
  std::string text(4096, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) return sysctl_failure(key, errno);
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Status write_sysctl_in_netns(const std::string& netns, std::string_view key,
                             std::string_view value) {
  return run_in_netns(netns, [&] { return write_sysctl(key, value); });
}

}  // namespace weft::adapt::lab
