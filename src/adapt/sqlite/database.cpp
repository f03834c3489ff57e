#include "adapt/sqlite/database.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fd.hpp"

namespace weft::adapt::sqlite {
namespace {

constexpr int busy_wait_ms = 2000;

struct Diagnosis {
  std::string what, hint;
};

Diagnosis full_disk(std::string_view reason) {
  return {fmt::format("no space left on its disk ({})", reason),
          "free space on its file system; nothing acknowledged is lost, and writing resumes when "
          "there is space"};
}

Diagnosis read_write_failure(int system_error) {
  const std::string reason = errno_text(system_error);
  // A limit on the size of files or a quota is a full disk to whoever has to help.
  if (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG)
    return full_disk(reason);
  return {fmt::format("reading or writing failed ({})", system_error == 0 ? "I/O error" : reason),
          "check the disk: dmesg, smartctl"};
}

// errno of the call that failed; 0 where it is not known.
int system_error_of(sqlite3* db) {
  if (const int error = sqlite3_system_errno(db); error != 0) return error;
  // A commit that fails has been rolled back by now; what still knows is the file of the log, or
  // without one that of the database.
  sqlite3_file* log = nullptr;
  int error = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&log)) ==
          SQLITE_OK &&
      log != nullptr && log->pMethods != nullptr)
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  if (error == 0) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  return error;
}

Diagnosis diagnosis_of(sqlite3* db, int code) {
  const int system_error = system_error_of(db);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return full_disk(sqlite3_errstr(SQLITE_FULL));  // a write that fell short has no errno
    case SQLITE_IOERR:
      return read_write_failure(system_error);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {"it is read-only",
              "give the user of this service write access to the file and its directory, and check "
              "that the file system is not mounted read-only"};
    case SQLITE_CANTOPEN:
      return {fmt::format("it cannot be opened ({})",
                          system_error == 0 ? sqlite3_errstr(code) : errno_text(system_error)),
              "give the user of this service write access to the file and its directory"};
    case SQLITE_NOTADB:
      return {"it is not a SQLite database, or its first page is damaged",
              "specify a weft store, or restore a backup"};
    case SQLITE_CORRUPT:
      return {"the file is damaged",
              "stop the service, keep a copy of the file and of its -wal, and restore a backup, or "
              "save what is readable with: sqlite3 FILE .recover"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {
          "another program holds a lock on it",
          "stop that program (fuser FILE shows it); no other program may write to a weft store"};
    default:
      return {sqlite3_errmsg(db), ""};
  }
}

}  // namespace

std::unexpected<Error> failure(sqlite3* db, int code, std::string_view doing) {
  const char* const path = sqlite3_db_filename(db, "main");
  Diagnosis diagnosis = diagnosis_of(db, code);
  return fail(Errc::io, {path == nullptr ? "" : path}, fmt::format("{}: {}", doing, diagnosis.what),
              std::move(diagnosis.hint));
}

void Statement::set(int index, std::int64_t value) {
  const int code = sqlite3_bind_int64(handle_.get(), index, value);
  if (bound_ == SQLITE_OK) bound_ = code;
}

// A null pointer would be NULL.
void Statement::set(int index, Text value) {
  const char* const at = value.bytes.empty() ? "" : value.bytes.data();
  const int code =
      sqlite3_bind_text64(handle_.get(), index, at, value.bytes.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (bound_ == SQLITE_OK) bound_ = code;
}

void Statement::set(int index, Blob value) {
  const char* const at = value.bytes.empty() ? "" : value.bytes.data();
  const int code = sqlite3_bind_blob64(handle_.get(), index, at, value.bytes.size(), SQLITE_STATIC);
  if (bound_ == SQLITE_OK) bound_ = code;
}

std::string Statement::bytes(int column) const {
  const void* const at = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  if (at == nullptr || size <= 0) return {};
  return {static_cast<const char*>(at), static_cast<std::size_t>(size)};
}

Status Statement::finish(int code) {
  sqlite3* const db = sqlite3_db_handle(handle_.get());
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_.get());
    return {};
  }
  auto failed = failure(db, code, "the store cannot be used");
  sqlite3_reset(handle_.get());
  return failed;
}

Result<Database> Database::open(const std::string& path, Access access) {
  const int mode = access == Access::write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  // Without SQLite's own locks around a connection: we lend each to one thread at a time.
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database db(handle);
  if (handle == nullptr) return fail(Errc::io, {path}, "out of memory");
  if (code != SQLITE_OK) {
    auto failed = failure(handle, code, "the store cannot be opened");
    failed.error().where.file = path;
    return failed;
  }
  sqlite3_busy_timeout(handle, busy_wait_ms);
  return db;
}

Status Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  return failure(handle_.get(), code, "the store cannot be used");
}

Result<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) return failure(handle_.get(), code, "the store cannot be used");
  return Statement(handle);
}

Result<std::int64_t> Database::integer(const char* sql) {
  WEFT_TRY(Statement statement, prepare(sql));
  std::int64_t out = 0;
  WEFT_TRY_STATUS(statement.each([&](const Statement& row) { out = row.integer(0); }));
  return out;
}

Result<std::string> Database::text(const char* sql) {
  WEFT_TRY(Statement statement, prepare(sql));
  std::string out;
  WEFT_TRY_STATUS(statement.each([&](const Statement& row) { out = row.bytes(0); }));
  return out;
}

std::uint64_t Database::changed() const {
  return static_cast<std::uint64_t>(sqlite3_changes64(handle_.get()));
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

Result<Transaction> Transaction::begin(Database& db) {
  WEFT_TRY_STATUS(db.run("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Transaction::~Transaction() {
  // SQLite itself rolls back after the worst failures. A rollback that fails leaves a transaction
  // that is never committed; the next begin() reports it.
  if (db_ != nullptr && db_->in_transaction()) static_cast<void>(db_->run("ROLLBACK"));
}

}  // namespace weft::adapt::sqlite
