#include "serve/handling.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace weft;
using namespace weft::serve;
using nlohmann::json;

namespace {

constexpr Timestamp t0{1'800'000'000 * ns_per_s};

Command command(Command::Kind kind, std::string who, std::string owner = "") {
  return {.kind = kind,
          .case_id = "c1",
          .who = std::move(who),
          .reason = "words",
          .owner = std::move(owner),
          .until = {}};
}

json last_of(const port::Commit& commit) { return json::parse(commit.documents.back().body); }

}  // namespace

TEST_CASE("who takes care of a case: taken, given, given up; each with an entry of the audit log") {
  using enum Command::Kind;
  Handlings handlings;
  port::Commit commit;
  CHECK(handlings.take(command(disown, "ann"), t0, commit).error().code == Errc::infeasible);
  CHECK(commit.documents.empty());
  REQUIRE(handlings.take(command(own, "ann"), t0, commit));
  CHECK(last_of(commit)["owner"] == "ann");
  CHECK(last_of(commit)["by"] == "ann");
  REQUIRE(handlings.take(command(own, "ann", "bob"), Timestamp{t0.ns + ns_per_s}, commit));
  CHECK(last_of(commit)["owner"] == "bob");
  CHECK(last_of(commit)["by"] == "ann");
  CHECK(json::parse(commit.audit.back().detail) ==
        json({{"owner", "bob"}, {"was", "ann"}, {"reason", "words"}}));
  REQUIRE(handlings.take(command(comment, "eve"), Timestamp{t0.ns + 2 * ns_per_s}, commit));
  CHECK(last_of(commit)["owner"] == "bob");  // words change no owner
  CHECK(last_of(commit)["comments"] == 1);
  CHECK(last_of(commit)["since"] == "2027-01-15T08:00:01Z");
  CHECK(commit.audit.back().actor == "eve");
  CHECK(json::parse(commit.audit.back().detail) == json({{"text", "words"}}));
  REQUIRE(handlings.take(command(disown, "bob"), Timestamp{t0.ns + 3 * ns_per_s}, commit));
  CHECK(last_of(commit)["owner"] == "");
  CHECK(commit.audit.size() == 4);
  CHECK(commit.documents.size() == 4);
}

TEST_CASE("a case that becomes part of another brings its owner, unless that one has its own") {
  using enum Command::Kind;
  Handlings handlings;
  port::Commit commit;
  handlings.merge("c1", "c2", t0, commit);  // nobody has it
  CHECK(commit.documents.empty());
  REQUIRE(handlings.take(command(own, "ann"), t0, commit));
  handlings.merge("c1", "c2", t0, commit);
  CHECK(commit.documents.back().id == "c2");
  CHECK(last_of(commit)["owner"] == "ann");
  CHECK(last_of(commit)["by"] == "weft");
  const std::size_t size = commit.documents.size();
  Command other = command(own, "bob");
  other.case_id = "c3";
  REQUIRE(handlings.take(other, t0, commit));
  handlings.merge("c3", "c2", t0, commit);
  CHECK(commit.documents.size() == size + 1);

  // A new life on the same documents goes on from them.
  Handlings again;
  std::vector<port::Document> kept = commit.documents;
  REQUIRE(again.restore(kept));
  port::Commit more;
  REQUIRE(again.take(command(comment, "eve"), t0, more));
  CHECK(last_of(more)["owner"] == "ann");
  kept.front().body = R"({"id":"c1","owner":7})";
  CHECK_FALSE(Handlings().restore(kept));
}

TEST_CASE("the audit log says who had a case at each instant") {
  using enum Command::Kind;
  Handlings handlings;
  port::Commit commit;
  std::vector<std::size_t> entries;  // so far, after each command
  std::int64_t ns = t0.ns;
  for (const auto& [kind, owner] : std::vector<std::pair<Command::Kind, std::string>>{
           {comment, ""}, {own, ""}, {own, "bob"}, {comment, ""}, {disown, ""}, {comment, ""}}) {
    REQUIRE(handlings.take(command(kind, "ann", owner), Timestamp{ns += ns_per_s}, commit));
    entries.push_back(commit.audit.size());
  }
  CHECK_FALSE(handling_of("c1", {}).value().has_value());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto then = handling_of("c1", std::span(commit.audit).first(entries[i]));
    REQUIRE(then.has_value());
    CHECK(**then == commit.documents[i]);
  }
}
