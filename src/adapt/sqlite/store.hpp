// port::Store in one file of this machine.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::adapt::sqlite {

// Opens the store at `path`, or makes a new one there (readable by its user and group only); its
// directory must exist. Beside it stand PATH-wal and PATH-shm, which belong to it, and PATH.lock,
// by which a second service is kept out for as long as the store is open.
// Fails: Errc::io (no right, no directory, damaged, in use, another program's database),
// Errc::unsupported (written by a newer weft, or a file system that cannot do it).
// Cost: some milliseconds; after a crash, a pass over what was not yet moved from PATH-wal.
Result<std::unique_ptr<port::Store>> open_sqlite(const std::string& path);

}  // namespace weft::adapt::sqlite
