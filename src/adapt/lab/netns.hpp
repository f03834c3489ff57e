// Named network namespaces, as `ip netns` knows them: files of /run/netns.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/linux_switch/link_watch.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

inline constexpr std::string_view netns_directory = "/run/netns";

// Makes a new, empty namespace under that name. The calling thread stays where it is.
// Fails: Errc::io, also when the name is taken. Cost: about a millisecond.
Status create_netns(const std::string& name);
// The same for many, on `threads` threads; those made before a failure stay.
Status create_netns(std::span<const std::string> names, unsigned threads);
// Unmounts and removes the name; the kernel frees the namespace when its last process or socket is
// gone. A name that is not there is no failure.
Status delete_netns(const std::string& name);
// Names under /run/netns that begin with `prefix`, sorted.
std::vector<std::string> list_netns(std::string_view prefix);

// Fails: Errc::io, Errc::unknown where there is none of that name.
Result<Fd> open_netns(const std::string& name);

// Moves the calling thread into a namespace for as long as the object lives. The thread must do
// nothing else that depends on its namespace; aborts where the way back is barred.
class InNetns {
 public:
  // Fails: as open_netns, and where setns() is not allowed.
  static Result<InNetns> enter(const std::string& name);
  ~InNetns();
  InNetns(InNetns&&) noexcept = default;
  InNetns& operator=(InNetns&&) = delete;
  InNetns(const InNetns&) = delete;
  InNetns& operator=(const InNetns&) = delete;

 private:
  explicit InNetns(Fd back) : back_(std::move(back)) {}
  Fd back_;
};

// Runs `work` inside a namespace, on a thread of its own, and waits for it.
Status run_in_netns(const std::string& name, const std::function<Status()>& work);

// Runs work(i) inside names[i], for all i, on `threads` threads. Stops at the first failure (by
// time) and returns it.
Status run_in_each_netns(std::span<const std::string> names, unsigned threads,
                         const std::function<Status(std::size_t)>& work);

// A socket that lives in that namespace, close-on-exec; the caller stays outside.
Result<Fd> socket_in_netns(const std::string& name, int domain, int type, int protocol);

// The news of a namespace's interfaces. Fails: Errc::io, and where the namespace is gone.
Result<LinkWatch> watch_links(const std::string& netns);

// Writes `value` to /proc/sys/<key>, e.g. "net/ipv4/ip_forward", of the calling thread's namespace.
// Fails: Errc::unsupported where the kernel has no such key, Errc::io else.
Status write_sysctl(std::string_view key, std::string_view value);
Result<std::string> read_sysctl(std::string_view key);
// The same inside a namespace.
Status write_sysctl_in_netns(const std::string& netns, std::string_view key,
                             std::string_view value);

}  // namespace weft::adapt::lab
