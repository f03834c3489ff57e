#include "app/store/backup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "adapt/postgres/image.hpp"
#include "adapt/sqlite/image.hpp"
#include "adapt/sqlite/store.hpp"
#include "app/store/open_store.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "os/digest.hpp"
#include "os/tar.hpp"
#include "port/store_schema.hpp"

namespace weft::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view snapshot_kind = "snapshot";
constexpr std::size_t commit_rows = 1'000;

std::size_t schema_version() { return port::store_migrations(port::SqlDialect::sqlite).size(); }

// A store file that goes away at the end, with what SQLite and its lock put beside it.
class WorkFile {
 public:
  explicit WorkFile(std::string path) : path_(std::move(path)) {}
  ~WorkFile() {
    for (const char* end : {"", "-wal", "-shm", ".lock"}) ::unlink((path_ + end).c_str());
  }
  WorkFile(const WorkFile&) = delete;
  WorkFile& operator=(const WorkFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Where a snapshot's document says it is; "" where it says nothing.
std::string path_in(const port::Document& document) {
  const auto line = JsonLine::parse(document.body, {});
  return line ? line->node().member("path").text().value_or("") : "";
}

std::string file_name(const std::string& path) { return fs::path(path).filename().native(); }

struct Survey {
  StoreContents contents;
  std::vector<std::string> snapshots;  // paths, by documents
};

Result<Survey> survey(port::StoreImage& image) {
  Survey out;
  std::map<std::string, std::uint64_t> kinds;
  WEFT_TRY(const port::StoreNumbers last, image.numbers());
  out.contents.last_event = last.events;
  WEFT_TRY_STATUS(port::each_piece(image, [&](const port::Commit& rows) -> Status {
    out.contents.events += rows.events.size();
    out.contents.audit += rows.audit.size();
    for (const port::Document& row : rows.documents) {
      ++kinds[row.kind];
      if (row.kind == snapshot_kind) out.snapshots.push_back(path_in(row));
    }
    return {};
  }));
  for (const auto& [kind, count] : kinds) out.contents.documents.push_back({kind, count});
  return out;
}

Status add_snapshots(const std::vector<std::string>& paths, const std::string& directory,
                     TarWriter& tar, BackupManifest& manifest, std::string& sums) {
  std::set<std::string> names;
  for (const std::string& path : paths) {
    const std::string name = file_name(path);
    if (!names.insert(name).second) continue;
    const std::string from = directory.empty() ? path : (fs::path(directory) / name).native();
    const Fd file(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about{};
    if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
      manifest.missing.push_back(name);
      continue;
    }
    const std::string member =
        fmt::format("snapshots/{}.tar.gz", manifest.snapshots.size() + 1);  // plain and short
    WEFT_TRY(const TarWriter::Added added, tar.add_file(member, file, from));
    sums += sums_line(added.sha256, member);
    manifest.snapshots.push_back({member, name, added.bytes, added.sha256});
  }
  return {};
}

Result<BackupManifest> write_archive(const std::string& store, const std::string& path,
                                     const BackupOptions& options) {
  BackupManifest out{.format = std::string(backup_format),
                     .version = backup_version,
                     .weft = options.weft,
                     .schema = static_cast<std::uint32_t>(schema_version()),
                     .taken = options.now,
                     .store = {},
                     .bytes = 0,
                     .sha256 = {},
                     .snapshots = {},
                     .missing = {}};
  WEFT_TRY(const auto image, adapt::sqlite::open_sqlite_image(store));
  WEFT_TRY(const Survey found, survey(*image));
  out.store = found.contents;
  WEFT_TRY(TarWriter tar, TarWriter::create(path, options.now));
  const Fd file(::open(store.c_str(), O_RDONLY | O_CLOEXEC));
  WEFT_TRY(const TarWriter::Added added, tar.add_file(std::string(store_member), file, store));
  out.bytes = added.bytes;
  out.sha256 = added.sha256;
  std::string sums = sums_line(added.sha256, store_member);
  WEFT_TRY_STATUS(add_snapshots(found.snapshots, options.snapshots, tar, out, sums));
  WEFT_TRY(const TarWriter::Added described,
           tar.add(std::string(manifest_member), write_fields(out) + "\n"));
  sums += sums_line(described.sha256, manifest_member);
  WEFT_TRY_STATUS(tar.add(std::string(sums_member), sums));
  WEFT_TRY_STATUS(tar.finish());
  return out;
}

// Before anything is written. A SQLite store that cannot be read counts as used.
Status check_unused(const std::string& where) {
  if (!is_postgres(where) && !fs::exists(where)) return {};
  const auto used = [&] {
    return fail(Errc::infeasible, {is_postgres(where) ? "the database" : where},
                "this store has been used", "name another one, or pass --replace");
  };
  const auto image = open_store_image(where);
  if (!image && image.error().code == Errc::unknown) return {};
  if (!image && is_postgres(where)) return std::unexpected(image.error());
  if (!image) return used();
  WEFT_TRY(const port::StoreNumbers numbers, (*image)->numbers());
  WEFT_TRY(const auto documents, (*image)->documents("", "", 1));
  if (numbers != port::StoreNumbers{} || !documents.empty()) return used();
  return {};
}

Result<std::string> sha256_of(const std::string& path) {
  WEFT_TRY(const std::string bytes, read_file(path));
  return sha256_hex(bytes);
}

// The members that are to be written, and where to: not those that are there already.
Result<std::map<std::string, std::string>> snapshot_targets(const BackupManifest& manifest,
                                                            const RestoreOptions& options) {
  std::map<std::string, std::string> out;
  if (manifest.snapshots.empty()) return out;
  if (options.snapshots.empty())
    return fail(Errc::value, {"--snapshots"},
                fmt::format("the backup has {} snapshots", manifest.snapshots.size()),
                "name the directory that they go to, that of weft serve --snapshots");
  for (const BackupSnapshot& one : manifest.snapshots) {
    const std::string to = (fs::path(options.snapshots) / one.name).native();
    if (fs::exists(to)) {
      WEFT_TRY(const std::string there, sha256_of(to));
      if (there == one.sha256) continue;
      if (options.if_used == port::IfUsed::refuse)
        return fail(Errc::infeasible, {to}, "another snapshot has this name",
                    "name another directory, or pass --replace");
    }
    out.emplace(one.file, to);
  }
  std::error_code error;
  if (fs::create_directories(options.snapshots, error) && !error)
    fs::permissions(options.snapshots, fs::perms::owner_all, error);
  if (error)
    return fail(Errc::io, {options.snapshots}, "cannot be created: " + error.message(),
                "check its path and permissions");
  return out;
}

// What a restored store has to know: where its snapshots are now, and that it was restored.
Status adjust(port::Store& store, const BackupManifest& manifest, const RestoreOptions& options) {
  std::set<std::string> restored;
  for (const BackupSnapshot& one : manifest.snapshots) restored.insert(one.name);
  WEFT_TRY(const auto documents, store.documents(snapshot_kind, end_of_time, SIZE_MAX));
  std::error_code error;  // of no directory, which is then not needed
  const fs::path directory = fs::absolute(options.snapshots, error);
  port::Commit commit;
  for (port::Document document : documents) {
    const std::string name = file_name(path_in(document));
    if (!restored.contains(name)) continue;
    WEFT_TRY(const JsonLine line, JsonLine::parse(document.body, {"a snapshot"}));
    document.body = line.but({"path"}).add("path", (directory / name).native()).text();
    commit.documents.push_back(std::move(document));
    if (commit.documents.size() < commit_rows) continue;
    WEFT_TRY_STATUS(store.commit(commit));
    commit = {};
  }
  commit.audit.push_back({0, options.now, "weft", "", "store_restored",
                          JsonObject()
                              .add("taken", manifest.taken)
                              .add("weft", manifest.weft)
                              .add("last_event", manifest.store.last_event)
                              .text()});
  WEFT_TRY_STATUS(store.commit(commit));
  return {};
}

}  // namespace

Result<StoreContents> contents_of(port::StoreImage& image) {
  WEFT_TRY(Survey out, survey(image));
  return std::move(out.contents);
}

Result<BackupManifest> back_up(port::StoreImage& image, const std::string& path,
                               const BackupOptions& options) {
  if (fs::exists(path))
    return fail(Errc::infeasible, {path}, "this file exists", "name a new one, or remove it");
  const WorkFile store(fmt::format("{}.db.tmp.{}", path, ::getpid()));
  if (Status done = adapt::sqlite::write_sqlite_image(store.path(), image); !done) {
    if (done.error().where.file == store.path()) done.error().where.file = path;
    return std::unexpected(std::move(done).error());
  }
  return write_archive(store.path(), path, options);
}

Result<Restored> restore(const std::string& path, const RestoreOptions& options) {
  WEFT_TRY(BackupManifest manifest, check_backup(path));
  WEFT_TRY_STATUS(port::check_store_version(manifest.schema, schema_version(), {path}));
  if (options.if_used == port::IfUsed::refuse) WEFT_TRY_STATUS(check_unused(options.store));
  const bool is_in_database = is_postgres(options.store);
  std::error_code error;
  const fs::path beside = is_in_database ? fs::temp_directory_path(error) / "weft"
                                         : fs::weakly_canonical(options.store, error);
  if (error)
    return fail(Errc::io, {options.store}, "cannot be opened: " + error.message(),
                "check the path");
  const WorkFile work(fmt::format("{}.restore.tmp.{}", beside.native(), ::getpid()));
  WEFT_TRY(auto targets, snapshot_targets(manifest, options));
  targets.emplace(store_member, work.path());
  WEFT_TRY_STATUS(extract(path, manifest, [&](const std::string& member) {
    const auto to = targets.find(member);
    return to == targets.end() ? "" : to->second;
  }));
  {
    WEFT_TRY(const auto store, adapt::sqlite::open_sqlite(work.path()));
    WEFT_TRY_STATUS(adjust(*store, manifest, options));
  }
  Restored out{std::move(manifest), {}};
  if (is_in_database) {
    WEFT_TRY(const auto image, adapt::sqlite::open_sqlite_image(work.path()));
    WEFT_TRY_STATUS(adapt::postgres::write_postgres_image(options.store, *image, options.if_used));
  } else {
    WEFT_TRY(out.replaced,
             adapt::sqlite::place_sqlite(work.path(), beside.native(), options.if_used));
  }
  return out;
}

}  // namespace weft::app
