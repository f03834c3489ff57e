// The file of a backup: a tar archive of the store, its snapshots, a manifest and checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::app {

struct KindCount {
  std::string kind;
  std::uint64_t count = 0;
};

// How much is in a store.
struct StoreContents {
  std::uint64_t events = 0;
  std::uint64_t last_event = 0;  // the last number that was given; so many were ever acknowledged
  std::uint64_t audit = 0;
  std::vector<KindCount> documents;  // by kind
};

struct BackupSnapshot {
  std::string file;  // in the archive
  std::string name;  // in the directory of snapshots
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct BackupManifest {
  std::string format;
  std::uint32_t version = 0;
  std::string weft;          // the version that wrote it
  std::uint32_t schema = 0;  // of the store in it
  Timestamp taken;
  StoreContents store;
  std::uint64_t bytes = 0;  // of the store's file
  std::string sha256;
  std::vector<BackupSnapshot> snapshots;
  std::vector<std::string> missing;  // snapshots that the store names and that were not there
};

template <class Archive, Of<KindCount> T>
void fields(Archive& ar, T& k) {
  ar("kind", k.kind);
  ar("count", k.count);
}
template <class Archive, Of<StoreContents> T>
void fields(Archive& ar, T& c) {
  ar("events", c.events);
  ar("last_event", c.last_event);
  ar("audit", c.audit);
  ar("documents", c.documents);
}
template <class Archive, Of<BackupSnapshot> T>
void fields(Archive& ar, T& s) {
  ar("file", s.file);
  ar("name", s.name);
  ar("bytes", s.bytes);
  ar("sha256", s.sha256);
}
template <class Archive, Of<BackupManifest> T>
void fields(Archive& ar, T& m) {
  ar("format", m.format);
  ar("version", m.version);
  ar("weft", m.weft);
  ar("schema", m.schema);
  ar("taken", m.taken);
  ar("store", m.store);
  ar("bytes", m.bytes);
  ar("sha256", m.sha256);
  ar("snapshots", m.snapshots);
  ar("missing", m.missing);
}

inline constexpr std::string_view backup_format = "weft backup";
inline constexpr std::uint32_t backup_version = 1;
// Members of the archive, beside the snapshots.
inline constexpr std::string_view store_member = "weft.db", manifest_member = "manifest.json",
                                  sums_member = "SHA256SUMS";

// A line of SHA256SUMS, as `sha256sum --check` reads it.
std::string sums_line(std::string_view sha256, std::string_view member);

// Reads all of it: every size and checksum, and that nothing is missing or added.
// Fails: Errc::io; Errc::parse, naming what is cut or changed; Errc::unsupported (a newer format).
// Cost: that of reading the file; memory for the manifest alone.
Result<BackupManifest> check_backup(const std::string& path);

// Writes members to files, each whole and durable: to target(member), unless that is "".
// `manifest` is what check_backup() gave. Fails: Errc::io, Errc::parse (the file changed since).
Status extract(const std::string& path, const BackupManifest& manifest,
               const std::function<std::string(const std::string& member)>& target);

}  // namespace weft::app
