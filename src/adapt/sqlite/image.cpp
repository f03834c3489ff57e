#include "adapt/sqlite/image.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "adapt/sqlite/database.hpp"
#include "adapt/sqlite/file_lock.hpp"
#include "adapt/sqlite/rows.hpp"
#include "adapt/sqlite/schema.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::sqlite {
namespace {

namespace fs = std::filesystem;

class SqliteImage final : public port::StoreImage {
 public:
  static Result<std::unique_ptr<port::StoreImage>> open(const std::string& path) {
    WEFT_TRY(Database db, Database::open(path, Access::read));
    WEFT_TRY_STATUS(db.run("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; BEGIN"));
    WEFT_TRY_STATUS(check_current(db, path));  // its first read also fixes the moment
    auto out = std::make_unique<SqliteImage>(std::move(db));
    WEFT_TRY(out->events_, out->db_.prepare(port::sql_events));
    WEFT_TRY(out->documents_, out->db_.prepare(port::sql_documents_from));
    WEFT_TRY(out->audit_, out->db_.prepare(port::sql_audit));
    return out;
  }
  explicit SqliteImage(Database db) : db_(std::move(db)) {}

  Result<port::StoreNumbers> numbers() override {
    WEFT_TRY(const std::int64_t events, db_.integer(port::sql_last_event));
    WEFT_TRY(const std::int64_t audit, db_.integer(port::sql_last_audit));
    return port::StoreNumbers{static_cast<std::uint64_t>(events),
                              static_cast<std::uint64_t>(audit)};
  }
  Result<std::vector<port::StoredEvent>> events(std::uint64_t seq, std::size_t rows_max) override {
    return rows_of(events_.bind(port::sql_number(seq), port::sql_number(rows_max)), event_of);
  }
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::size_t rows_max) override {
    return rows_of(audit_.bind(port::sql_number(seq), port::sql_number(rows_max)), audit_of);
  }
  Result<std::vector<port::Document>> documents(const std::string& kind, const std::string& id,
                                                std::size_t rows_max) override {
    return rows_of(documents_.bind(Text{kind}, Text{id}, port::sql_number(rows_max)), document_of);
  }

 private:
  Database db_;
  Statement events_, documents_, audit_;
};

Status write_rows(Database& db, port::StoreImage& image) {
  WEFT_TRY(Transaction transaction, Transaction::begin(db));
  WEFT_TRY(Statement event, db.prepare(insert_event));
  WEFT_TRY(Statement document, db.prepare(insert_document));
  WEFT_TRY(Statement audit, db.prepare(insert_audit));
  WEFT_TRY(const port::StoreNumbers last, image.numbers());
  WEFT_TRY_STATUS(port::each_piece(image, [&](const port::Commit& rows) -> Status {
    for (const port::StoredEvent& row : rows.events) WEFT_TRY_STATUS(insert(event, row.seq, row));
    for (const port::Document& row : rows.documents) WEFT_TRY_STATUS(insert(document, row));
    for (const port::AuditEntry& row : rows.audit) WEFT_TRY_STATUS(insert(audit, row.seq, row));
    return {};
  }));
  WEFT_TRY_STATUS(
      db.run(fmt::format("UPDATE meta SET value = {} WHERE name = 'events';"
                         "UPDATE meta SET value = {} WHERE name = 'audit'",
                         last.events, last.audit)));
  return transaction.commit();
}

// Whether anything was ever put into the store there. One that cannot be read counts as used.
bool is_used(const std::string& path) {
  std::error_code error;
  if (fs::file_size(path, error) == 0 || error == std::errc::no_such_file_or_directory)
    return false;
  const auto image = open_sqlite_image(path);
  if (!image) return true;
  const auto numbers = (*image)->numbers();
  const auto documents = (*image)->documents("", "", 1);
  return !numbers || !documents || *numbers != port::StoreNumbers{} || !documents->empty();
}

Status rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return file_failure(from, fmt::format("cannot be renamed to {}", to), errno);
}

constexpr std::array<std::string_view, 3> parts{"-wal", "-shm", ""};

// The log first: without its database it would otherwise be taken for that of the next one.
Result<std::string> move_away(const std::string& path) {
  std::string to;
  for (int i = 1; to.empty() || fs::exists(to); ++i) to = fmt::format("{}.replaced-{}", path, i);
  for (const std::string_view part : parts)
    if (const std::string file = fmt::format("{}{}", path, part); fs::exists(file))
      WEFT_TRY_STATUS(rename_file(file, fmt::format("{}{}", to, part)));
  return to;
}

}  // namespace

Result<std::unique_ptr<port::StoreImage>> open_sqlite_image(const std::string& path) {
  return SqliteImage::open(path);
}

Status write_sqlite_image(const std::string& path, port::StoreImage& image) {
  const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!file.valid()) return file_failure(path, "cannot be created", errno);
  const auto write = [&]() -> Status {
    WEFT_TRY(Database db, Database::open(path, Access::write));
    // Whoever keeps the file syncs it; what is left of a crash is thrown away.
    WEFT_TRY_STATUS(db.run("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF"));
    WEFT_TRY_STATUS(migrate(db, path, port::store_migrations(port::SqlDialect::sqlite)));
    return write_rows(db, image);
  };
  const Status done = write();
  if (!done) unlink(path.c_str());
  return done;
}

Result<std::string> place_sqlite(const std::string& from, const std::string& path,
                                 port::IfUsed if_used) {
  WEFT_TRY(const FileLock lock, FileLock::take(path));
  {
    // All of it in one file, synced: a log beside it would stay behind.
    WEFT_TRY(Database db, Database::open(from, Access::write));
    WEFT_TRY_STATUS(db.run("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE"));
  }
  std::string moved;
  if (is_used(path)) {
    if (if_used == port::IfUsed::refuse)
      return fail(Errc::infeasible, {path}, "this store has been used",
                  "name a file that does not exist, or move it aside with --replace");
    WEFT_TRY(moved, move_away(path));
  } else {
    for (const std::string_view part : parts) unlink(fmt::format("{}{}", path, part).c_str());
  }
  WEFT_TRY_STATUS(rename_file(from, path));
  const std::string folder = fs::path(path).parent_path().string();
  const Fd opened(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0)
    return file_failure(folder, "cannot be synced", errno);
  return moved;
}

}  // namespace weft::adapt::sqlite
