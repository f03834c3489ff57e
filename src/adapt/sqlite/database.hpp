// SQLite's handles, owned, with its codes as Errors.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace weft::adapt::sqlite {

// The Error of the call on `db` that gave `code`: what failed, where, and what an operator can do.
[[nodiscard]] std::unexpected<Error> failure(sqlite3* db, int code, std::string_view doing);

// How a value is kept.
struct Text {
  std::string_view bytes;
};
struct Blob {
  std::string_view bytes;
};

// A prepared statement. Used by one thread at a time, as its database.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  // Sets the parameters 1, 2, ...; texts and blobs are not copied and must last until the run.
  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    bound_ = SQLITE_OK;
    (set(++index, values), ...);
    return *this;
  }
  // Runs it, calls `take` on each row, and makes it ready for the next time.
  template <class Take>
  Status each(Take take) {
    int code = bound_ == SQLITE_OK ? sqlite3_step(handle_.get()) : bound_;
    for (; code == SQLITE_ROW; code = sqlite3_step(handle_.get())) take(*this);
    return finish(code);
  }
  Status run() {
    return each([](const Statement&) {});
  }

  // Columns 0, 1, ... of the current row.
  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::string bytes(int column) const;

 private:
  struct Close {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  void set(int index, std::int64_t value);
  void set(int index, Text value);
  void set(int index, Blob value);
  Status finish(int code);

  std::unique_ptr<sqlite3_stmt, Close> handle_;
  int bound_ = SQLITE_OK;  // the first failure of bind
};

enum class Access : std::uint8_t { read, write };

// A connection. Used by one thread at a time.
class Database {
 public:
  // The file must exist, and may be empty. Statements wait for other programs' locks for a while.
  static Result<Database> open(const std::string& path, Access access);

  // One or more statements, without results.
  Status run(const std::string& sql);
  Result<Statement> prepare(const char* sql);
  // The one value of the one row.
  Result<std::int64_t> integer(const char* sql);
  Result<std::string> text(const char* sql);
  // Rows that the last statement changed.
  std::uint64_t changed() const;
  bool in_transaction() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  explicit Database(sqlite3* handle) : handle_(handle) {}
  std::unique_ptr<sqlite3, Close> handle_;
};

// All or nothing: rolls back at its end unless it was committed.
class Transaction {
 public:
  // Takes the right to write at once. Fails: Errc::io.
  static Result<Transaction> begin(Database& db);
  ~Transaction();
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Durable when it returns. Fails: Errc::io; nothing is kept then.
  Status commit() { return db_->run("COMMIT"); }

 private:
  explicit Transaction(Database& db) : db_(&db) {}
  Database* db_;
};

}  // namespace weft::adapt::sqlite
