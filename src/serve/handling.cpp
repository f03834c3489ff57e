#include "serve/handling.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/field_schema.hpp"
#include "base/json_text.hpp"

namespace weft::serve {

template <class Archive, Of<Handling> T>
void fields(Archive& ar, T& h) {
  ar("id", h.id);
  ar("owner", h.owner);
  ar("by", h.by);
  ar("since", h.since);
  ar("comments", h.comments);
}

namespace {

port::AuditEntry entry(Timestamp now, const std::string& who, const std::string& id,
                       std::string_view action, const JsonObject& detail) {
  return {0, now, who, id, std::string(action), detail.text()};
}

}  // namespace

std::string handling_schema() { return schema_of_fields<Handling>(); }

Result<std::optional<port::Document>> handling_of(const std::string& id,
                                                  std::span<const port::AuditEntry> entries) {
  std::optional<port::Document> out;
  Handling of{.id = id, .owner = {}, .by = {}, .since = {}, .comments = 0};
  for (const port::AuditEntry& entry : entries) {
    if (entry.action == "comment") {
      ++of.comments;
    } else if (entry.action == "own" || entry.action == "disown") {
      WEFT_TRY(const JsonLine line,
               JsonLine::parse(entry.detail, {fmt::format("audit entry {}", entry.seq)}));
      of.owner = entry.action == "own" ? line.node().member("owner").text().value_or("") : "";
      of.by = entry.actor;
      of.since = entry.t;
    } else {
      continue;
    }
    out = {std::string(handling_kind), id, entry.t, write_fields(of)};
  }
  return out;
}

Status Handlings::restore(const std::vector<port::Document>& documents) {
  Errors errors;
  for (const port::Document& document : documents) {
    WEFT_TRY(const JsonLine line,
             JsonLine::parse(document.body, {fmt::format("who handles case {}", document.id)}));
    read_fields(line, rows_[document.id], errors);
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

Status Handlings::take(const Command& command, Timestamp now, port::Commit& commit) {
  using enum Command::Kind;
  Handling of;
  if (const auto known = rows_.find(command.case_id); known != rows_.end()) of = known->second;
  of.id = command.case_id;
  if (command.kind == comment) {
    ++of.comments;
    commit.audit.push_back(
        entry(now, command.who, of.id, "comment", JsonObject().add("text", command.reason)));
  } else {
    if (command.kind == disown && of.owner.empty())
      return fail(Errc::infeasible, {}, fmt::format("case {} has no owner", of.id));
    const std::string was = std::exchange(of.owner, command.kind == disown  ? std::string()
                                                    : command.owner.empty() ? command.who
                                                                            : command.owner);
    of.by = command.who;
    of.since = now;
    commit.audit.push_back(entry(now, command.who, of.id, command.kind == own ? "own" : "disown",
                                 JsonObject()
                                     .add_if("owner", of.owner)
                                     .add_if("was", was)
                                     .add_if("reason", command.reason)));
  }
  rows_[of.id] = of;
  keep(of, now, commit);
  return {};
}

void Handlings::merge(const std::string& from, const std::string& into, Timestamp now,
                      port::Commit& commit) {
  const auto known = rows_.find(from);
  if (known == rows_.end() || known->second.owner.empty()) return;
  Handling& of = rows_[into];
  if (!of.owner.empty()) return;
  of.id = into;
  of.owner = known->second.owner;
  of.by = "weft";
  of.since = now;
  commit.audit.push_back(
      entry(now, "weft", into, "own", JsonObject().add("owner", of.owner).add("from", from)));
  keep(of, now, commit);
}

void Handlings::keep(const Handling& handling, Timestamp now, port::Commit& commit) const {
  commit.documents.push_back(
      {std::string(handling_kind), handling.id, now, write_fields(handling)});
}

}  // namespace weft::serve
