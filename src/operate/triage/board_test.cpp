// The pieces of the correlator's state keep each other in step.
#include "operate/triage/board.hpp"

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::small_zone;

struct Desk {
  model::Fabric fabric = small_zone();
  Context context{fabric, default_rules()};
  Board board{context, SIZE_MAX / 2};

  PartId cable(std::uint32_t i) const { return context.parts.of(model::CableId(i)); }
  void go_down(PartId part, std::int64_t at) {
    Evidence e;
    e.at = e.begin = at;
    e.part = part;
    e.kind = model::EventKind::link_down;
    board.put_aside(e, false);
  }
  CaseSlot open(PartId part) {
    const CaseSlot slot =
        board.open_case(CauseKind::link, part, context.parts.entity(part), ns_per_s);
    board.take(slot, part, Silent::own);
    return slot;
  }
};

TEST_CASE("timers: earliest first, of equals the smallest id, and none before it is due") {
  Timers<PartId> timers;
  timers.push(20, PartId(1));
  timers.push(10, PartId(3));
  timers.push(10, PartId(2));
  CHECK(timers.next() == 10);
  CHECK_FALSE(timers.pop(9).has_value());
  for (const std::uint32_t id : {2U, 3U, 1U}) CHECK(timers.pop(20)->second == PartId(id));
  CHECK_FALSE(timers.next().has_value());
}

TEST_CASE("the slot that was freed last is used first") {
  Pendings pendings;
  const PendingSlot a = pendings.open(PartId(1), 0), b = pendings.open(PartId(2), 0);
  pendings.close(a);
  pendings.close(b);
  CHECK(pendings.open(PartId(3), 0) == b);
  CHECK(pendings.open(PartId(4), 0) == a);
  CHECK(pendings.rows().size() == 2);
}

TEST_CASE("footprints count alarms that wait, and no others") {
  Desk desk;
  const PartId part = desk.cable(0);
  const auto suspects = desk.context.suspects.of(part);
  REQUIRE(!suspects.empty());
  desk.go_down(part, ns_per_s);
  desk.go_down(part, 2 * ns_per_s);
  for (const SuspectId suspect : suspects) CHECK(desk.board.footprints.alarms(suspect) == 1);
  desk.open(part);
  CHECK(desk.board.waiting(part) == nullptr);
  for (const SuspectId suspect : suspects) {
    CHECK(desk.board.footprints.alarms(suspect) == 0);
    CHECK(desk.board.footprints.cases(suspect) == 1);
  }
  desk.board.footprints.forget_cases(ns_per_s * 86'400);
  for (const SuspectId suspect : suspects) CHECK(desk.board.footprints.cases(suspect) == 0);
}

TEST_CASE("a case that is absorbed hands over its parts and its suspect") {
  Desk desk;
  Board& board = desk.board;
  for (const std::uint32_t i : {0U, 1U}) desk.go_down(desk.cable(i), ns_per_s);
  const CaseSlot greater = desk.open(desk.cable(0)), lesser = desk.open(desk.cable(1));
  const SuspectId suspect = desk.context.suspects.of(desk.cable(1)).front();
  board.cases.name_suspect(lesser, suspect);
  board.absorb(greater, lesser);
  CHECK(board.cases.by_number().size() == 1);
  CHECK(board.states[desk.cable(1)].owner == greater);
  CHECK(board.cases[greater].members.size() == 2);
  CHECK_FALSE(board.cases.of(suspect).valid());
  CHECK(board.counts.cases == 1);
  board.release(greater);
  for (const std::uint32_t i : {0U, 1U}) CHECK_FALSE(board.states[desk.cable(i)].owner.valid());
  CHECK(board.cases.by_number().empty());
}

}  // namespace
}  // namespace weft::operate::triage
