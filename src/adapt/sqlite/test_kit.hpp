// A place for stores that goes away with the test, and SQLite past the store.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <memory>
#include <string>

#include "adapt/sqlite/store.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::sqlite::testing {

inline std::unique_ptr<port::Store> open_store(const std::string& path) {
  auto store = open_sqlite(path);
  if (!store) FAIL(store.error().text());
  return *std::move(store);
}

// SQLite's own code.
inline int execute(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  int code = sqlite3_open(path.c_str(), &db);
  if (code == SQLITE_OK) code = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
  sqlite3_close(db);
  return code;
}

}  // namespace weft::adapt::sqlite::testing
