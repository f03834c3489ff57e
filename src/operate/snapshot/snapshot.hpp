// Evidence before it is gone: what the devices around a case say, in one compressed file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/case.hpp"
#include "operate/snapshot/collect.hpp"
#include "operate/snapshot/manifest.hpp"
#include "operate/snapshot/retention.hpp"
#include "os/tar.hpp"
#include "port/device_state.hpp"

namespace weft::operate::snapshot {

// An archive, read back and found whole.
struct Snapshot {
  Manifest manifest;
  std::vector<ArchiveFile> files;  // without the manifest
};

// The bytes of the .tar.gz: the manifest first, then the files in its order. Deterministic.
Result<std::string> pack(const Snapshot& snapshot);
// Reads an archive and checks the manifest, every size and every checksum: nothing may be missing,
// changed or added. Fails: Errc::parse with all that is wrong.
Result<Snapshot> verify(std::string_view archive, const std::string& file);
Result<Snapshot> load(const std::string& path);

struct Settings {
  std::string directory;
  std::uint64_t bytes_max = std::uint64_t{4} << 30;  // of all snapshots there
  Limits limits;
};

struct Taken {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;                // of the archive, to be kept elsewhere
  std::string manifest;              // JSON
  std::vector<std::string> removed;  // older snapshots that had to go
};

class Taker {
 public:
  Taker(std::shared_ptr<port::DeviceState> devices, Settings settings);

  // Asks the devices around the case and writes "<case>.<time>.tar.gz" to the directory, whole or
  // not at all, made durable before it has its name. Devices that do not answer are no failure.
  // `trigger`: the rule or detection that wants it. `open_cases`: whose snapshots must stay.
  // Fails: Errc::infeasible where those alone fill the directory, Errc::io (also: full disk).
  // Cost: the patience of the limits at most, and some 20 ms a MiB for compression.
  Result<Taken> take(const model::Fabric& fabric, const model::Case& c, std::string_view trigger,
                     Timestamp now, std::span<const std::string> open_cases);

 private:
  Collector collector_;
  Settings settings_;
};

}  // namespace weft::operate::snapshot
