// All of a service in one file: its store, and the snapshots that the store names.
#pragma once

#include <string>

#include "app/store/backup_file.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/store_image.hpp"

namespace weft::app {

// Cost: a pass over the store.
Result<StoreContents> contents_of(port::StoreImage& image);

struct BackupOptions {
  std::string snapshots;  // the directory that they are in; "": where the store says
  std::string weft;       // this version
  Timestamp now;
};
// Writes a new file, for its owner only; the service goes on meanwhile. A snapshot that is not
// there any more (the service removes old ones to make room) is noted in the manifest.
// Fails: Errc::io (also: full disk), Errc::infeasible where the file exists; nothing is left then.
// Cost: room for twice the store; some 10 us an event and the speed of the disk for snapshots.
Result<BackupManifest> back_up(port::StoreImage& image, const std::string& path,
                               const BackupOptions& options);

struct RestoreOptions {
  std::string store;      // as --store of weft serve
  std::string snapshots;  // the directory that they go to, made where it is missing
  port::IfUsed if_used = port::IfUsed::refuse;
  Timestamp now;
};
struct Restored {
  BackupManifest manifest;
  std::string replaced;  // where the SQLite store that was there is now; "" where none was
};
// Checks all of the file before anything is written; the store comes last, whole or not at all,
// upgraded to this version, with the snapshots' new paths and a line in its audit log.
// Fails: Errc::parse (a cut or changed file), Errc::infeasible (a used store, or another snapshot
// of that name, unless they may be replaced), Errc::value (no directory for snapshots), Errc::io
// (also: a service uses the store; full disk), Errc::unsupported (of a newer weft).
Result<Restored> restore(const std::string& path, const RestoreOptions& options);

}  // namespace weft::app
