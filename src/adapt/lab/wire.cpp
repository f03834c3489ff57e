#include "adapt/lab/wire.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "adapt/lab/fault_worker.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/wire_relay.hpp"
#include "base/file.hpp"

namespace weft::adapt::lab {

Result<LabProcess> start_wire(const WireSpec& spec, const std::string& journal) {
  return start_worker({.role = spec.name, .node = spec.node, .journal = journal},
                      [&]() -> Result<WorkerBody> {
                        WEFT_TRY(WireRelay relay, WireRelay::open(spec));
                        const auto shared = std::make_shared<WireRelay>(std::move(relay));
                        return WorkerBody([shared] { shared->run(); });  // std::function copies
                      });
}

Result<WireCount> read_wire_count(const std::string& count_file) {
  WEFT_TRY(const std::string bytes, read_file(count_file, 4'096));
  WireCount count;
  if (bytes.size() != sizeof count)
    return fail(Errc::io, {count_file, 0, 0}, "not a wire's counters");
  std::memcpy(&count, bytes.data(), sizeof count);
  return count;
}

}  // namespace weft::adapt::lab
