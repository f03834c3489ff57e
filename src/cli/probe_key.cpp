#include "cli/probe_key.hpp"

#include <sys/random.h>

#include <chrono>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "observe/probe/wire.hpp"

namespace weft::cli {

Result<observe::probe::Key> read_probe_key(const std::string& path) {
  if (path.empty())
    return fail(Errc::value, {"--key", 0, 0}, "no key given",
                "specify a file with 32 hexadecimal digits shared by probers and responders, e.g. "
                "from: openssl rand -hex 16");
  constexpr std::uint64_t bytes_max = 4096;
  WEFT_TRY(const std::string text, read_file(path, bytes_max));
  return observe::probe::parse_key(text, path);
}

std::uint64_t random_number() {
  std::uint64_t out = 0;
  if (::getrandom(&out, sizeof out, 0) == sizeof out) return out;
  return mix64(
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
}

}  // namespace weft::cli
