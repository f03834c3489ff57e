// The cases as the world sees them: early ones within seconds, the right ones a little later, and
// what became of the early ones.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_text.hpp"
#include "base/names.hpp"
#include "model/events/case.hpp"
#include "operate/triage/triage.hpp"

namespace weft::serve {

// Rules for those who cannot wait: every wait shortened to `wait_ns`, and a lateness of a moment.
// What comes later than that is seen by the other rules only.
struct ProvisionalSettings {
  std::int64_t wait_ns = 500'000'000;
  std::int64_t lateness_ns = 200'000'000;
  std::int64_t loss_wait_ns = 2'000'000'000;  // the same of lost probes
  std::uint32_t losses = 2;                   // records of them that make a case
};
operate::triage::Rules provisional_rules(const operate::triage::Rules& rules,
                                         const ProvisionalSettings& settings);

// A case under the name that it keeps.
struct CaseStatus {
  enum class State : std::uint8_t {
    provisional,  // what is known so far; half a minute later it is final or gone
    open,         // decided; more may join
    closed,       // nothing can join any more
    superseded,   // it was part of what `into` names
    withdrawn,    // too little in the end
  };
  State state = State::provisional;
  model::Case body;
  std::string into;
  // As `weft triage --json` writes it, and "standing", "into". "": nothing but more of the same
  // came, and the document is to be written later.
  std::string json;
};
inline constexpr auto standing_names =
    std::to_array<std::string_view>({"provisional", "open", "closed", "superseded", "withdrawn"});
constexpr std::span<const std::string_view> names_of(CaseStatus::State) { return standing_names; }
constexpr std::string_view to_text(CaseStatus::State state) { return name_of(state); }
constexpr bool is_over(CaseStatus::State state) { return state > CaseStatus::State::open; }

// Feeds two triages with the same records, one early and one settled, and joins what they say. A
// case of the settled one takes over the early ones whose records it holds.
class CasePublisher {
 public:
  // Of the same fabric; both must outlive the publisher.
  CasePublisher(const operate::triage::Context& settled,
                const operate::triage::Context& provisional);

  // One record; `number` is ascending and unique.
  void add(const model::RecordSet& set, const model::Record& record, std::uint64_t number);
  // Time has come to `now`.
  void advance(Timestamp now);
  Timestamp now() const { return now_; }

  // What changed since the last call, in order of name: new cases, other members, other states. Of
  // a case that only has more members than before the document comes after a tenth of its age, at
  // most a minute: a link that flaps for weeks does not have its case written every second.
  // Cost: that of describing the cases that changed, and O(parts of the open ones).
  std::vector<CaseStatus> changes();
  // A case published in an earlier life of the service, by its document. Should the same be said
  // again, it is no change. Fails: Errc::parse where the document has no standing.
  Result<CaseStatus::State> restore(const std::string& id, std::string_view json);

  // To be called when all that may concern recalled cases was added again, and after changes(): of
  // those that were open and did not come about again nobody will ever say anything. They end as
  // withdrawn.
  std::vector<CaseStatus> withdraw_stale();

  std::optional<model::Case> find(const std::string& id) const;
  // When changes() may have something new though nothing is added; none: never.
  std::optional<Timestamp> next_due() const;
  // No record with a smaller number is needed any more.
  std::uint64_t oldest_number() const;
  std::size_t open_count() const { return standing_.size(); }
  // Records that are held for cases.
  std::size_t kept_count() const { return kept_.size(); }
  // What describing has cost so far.
  struct Work {
    std::uint64_t cases = 0, records = 0;
    std::uint64_t bytes = 0;  // of documents
  };
  const Work& work() const { return work_; }
  operate::triage::Triage::Counts counts() const { return settled_.counts(); }

 private:
  struct Published {
    CaseStatus::State state = CaseStatus::State::provisional;
    JsonObject document;       // but for its standing; empty once it is over
    std::uint64_t digest = 0;  // of all of it
    model::Case body;          // without its records once it is over
    std::uint64_t records = 0;
    Timestamp written;  // when the document was
  };
  // Of a record.
  struct Kept {
    std::string id;
    std::string owner;  // the settled case that holds it; "" for none
  };
  using Changes = std::vector<CaseStatus>;
  using Cases = std::vector<model::Case>;

  void publish_settled(Changes& out);
  void take(CaseStatus::State state, const model::Case& c, Changes& out);
  void publish_provisional(const Cases& closed, Changes& out);
  void publish_provisional(const model::Case& c, Changes& out);
  void settle_provisional(const Cases& closed, Changes& out);
  std::string provisional_holder(const model::Case& but, const Cases& closed) const;
  void publish(CaseStatus::State state, const model::Case& c, Changes& out);
  void write(Published& known, Changes& out);
  void write_late(Changes& out);
  void settle(Published& was, std::string into, Changes& out);
  void end(Published& was);
  std::string_view owner(const model::Case& c) const;
  const Kept* kept(std::uint64_t number) const;
  void forget();

  const model::Fabric& fabric_;
  std::vector<model::Case> closed_, closed_provisional_;  // since the last look
  operate::triage::Triage settled_, provisional_;
  operate::triage::Cursor settled_seen_, provisional_seen_;
  std::map<std::string, Published> published_;
  std::set<std::string> provisional_ids_;          // of them
  std::map<std::uint64_t, std::string> standing_;  // and those that the settled triage has open
  std::set<std::string> late_;                     // and those with a document to be written
  std::deque<std::string> ended_;                  // and those that are over, oldest first
  std::map<std::uint64_t, model::Case> provisional_open_;  // by the provisional triage's numbers
  // Records that may still be members; never iterated into results.
  std::unordered_map<std::uint64_t, Kept> kept_;
  Timestamp now_, forgotten_;
  std::size_t kept_then_ = 0;  // size of kept_ when it last forgot
  Work work_;
};

}  // namespace weft::serve
