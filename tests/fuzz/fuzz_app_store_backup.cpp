// check_backup: no input crashes, and what is accepted can be extracted.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "app/store/backup_file.hpp"
#include "base/fd.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::Fd file(::memfd_create("backup", MFD_CLOEXEC));
  WEFT_CHECK(::write(file.get(), data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto manifest = weft::app::check_backup(path);
  if (!manifest) {
    WEFT_CHECK(!manifest.error().what.empty());
    return 0;
  }
  for (const auto& one : manifest->snapshots) WEFT_CHECK(one.name.find('/') == one.name.npos);
  WEFT_CHECK(
      weft::app::extract(path, *manifest, [](const std::string&) { return ""; }).has_value());
  return 0;
}
