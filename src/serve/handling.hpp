// What people say of a case beside its repair: who takes care of it, and comments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.hpp"
#include "port/store.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// The kind of these documents in the store.
inline constexpr std::string_view handling_kind = "handling";

struct Handling {
  std::string id;     // of the case
  std::string owner;  // "" where nobody has it
  std::string by;     // who gave it to the owner, or took it away; "" where nobody ever did
  Timestamp since;    // when
  std::uint64_t comments = 0;  // their texts are entries of the audit log
};

// What take() and merge() wrote after these entries of a case's audit log, in order; none where
// nobody had done or said anything. Fails: Errc::parse.
Result<std::optional<port::Document>> handling_of(const std::string& id,
                                                  std::span<const port::AuditEntry> entries);

// JSON Schema of a Handling.
std::string handling_schema();

class Handlings {
 public:
  // Fails: Errc::parse, Errc::value on what this version did not write.
  Status restore(const std::vector<port::Document>& documents);

  // own, disown and comment, whose case is known to exist: the document and the audit entry of it.
  // Fails: Errc::infeasible where nobody has the case that is given up.
  Status take(const Command& command, Timestamp now, port::Commit& commit);
  // A case became part of another: who had it has that one now, unless somebody has it already.
  void merge(const std::string& from, const std::string& into, Timestamp now, port::Commit& commit);

 private:
  void keep(const Handling& handling, Timestamp now, port::Commit& commit) const;

  std::map<std::string, Handling> rows_;  // by case
};

}  // namespace weft::serve
