// One list of fields serves both ways, so that they cannot come apart.
#include <fmt/format.h>

#include <utility>

#include "base/field_schema.hpp"
#include "base/text.hpp"
#include "operate/repair/ticket.hpp"

namespace weft::port {

template <class Archive, Of<Check> T>
void fields(Archive& ar, T& c) {
  ar("sent", c.sent);
  ar("lost", c.lost);
  ar.added("rate_share", c.rate_share);
}

}  // namespace weft::port

namespace weft::operate::repair {

template <class Archive, Of<Forecast> T>
void fields(Archive& ar, T& f) {
  ar("jobs", f.jobs);
  ar("stalled", f.stalled);
  ar("slowdown_max", f.slowdown_max);
  ar("worst", f.worst);
}

template <class Archive, Of<Followed> T>
void fields(Archive& ar, T& f) {
  ar("id", f.id);
  ar("kind", f.kind);
  ar("root", f.root);
  ar("state", f.state);
  ar("confidence", f.confidence);
  ar("opened", f.opened);
  ar("is_open", f.is_open);
  ar("is_moved", f.is_moved);
  ar("told", f.told);
  ar.added("is_probed", f.is_probed);
}

template <class Archive, Of<ActionAttempt> T>
void fields(Archive& ar, T& d) {
  ar("kind", d.kind);
  ar("id", d.id);
  ar("phase", d.phase);
  ar("tries", d.tries);
  ar("since", d.since);
}

template <class Archive, Of<Pending> T>
void fields(Archive& ar, T& p) {
  ar("id", p.id);
  ar("kind", p.kind);
  ar("since", p.since);
}

template <class Archive, Of<Message> T>
void fields(Archive& ar, T& m) {
  ar("id", m.id);
  ar("case", m.case_id);
  ar("event", m.event);
  ar("summary", m.summary);
  ar("tries", m.tries);
  ar("due", m.due);
  ar("is_pending", m.is_pending);
}

template <class Archive, Of<Rma> T>
void fields(Archive& ar, T& r) {
  ar("number", r.number);
  ar("ordered", r.ordered);
  ar("shipped", r.shipped);
  ar("received", r.received);
  ar("from", r.from);
}

template <class Archive, Of<Ticket> T>
void state_fields(Archive& ar, T& t) {
  ar("is_reserved", t.is_reserved);
  ar("was_drained", t.was_drained);
  ar("is_rejected", t.is_rejected);
  ar("has_relapsed", t.has_relapsed);
  ar("is_offender", t.is_offender);
  ar("is_held", t.is_held);
  ar("no_means", t.no_means);
  ar("approved_by", t.approved_by);
  ar("repaired_by", t.repaired_by);
  ar("service", t.service);
  ar("deed", t.deed);
  ar("after_undo", t.after_undo);
  ar("retry", t.retry);
  ar("refused_by", t.refused_by);
  ar("pending", t.pending);
  ar("snapshot", t.snapshot);
  ar("snapshot_tries", t.snapshot_tries);
  ar("look_at", t.look_at);
  ar("forecast", t.forecast);
  ar("baseline", t.baseline);
  ar("verify", t.verify);
  ar.added("loss", t.loss);
  ar("checks_failed", t.checks_failed);
  ar("verifications", t.verifications);
  ar("check_at", t.check_at);
  ar("told_at", t.told_at);
  ar("rollbacks", t.rollbacks);
  ar.added("exonerations", t.exonerations);
  ar.added("held_until", t.held_until);
  ar.added("overdue", t.overdue);
}

template <class Archive, Of<Ticket> T>
void fields(Archive& ar, T& t) {
  ar("id", t.id);
  ar("serial", t.serial);
  ar("orders", t.orders);
  ar("kind", t.kind);
  ar("root", t.root);
  ar("part", t.part);
  ar("cases", t.cases);
  ar("stage", t.stage);
  ar("since", t.since);
  ar("opened", t.opened);
  ar("seen", t.seen);
  ar("reason", t.reason);
  ar("retry_at", t.retry_at);
  ar("resolution", t.resolution);
  for (std::size_t i = 0; i < ttr_part_count; ++i) {
    const std::string key = fmt::format("{}_ns", to_text(static_cast<TtrPart>(i)));
    if (static_cast<TtrPart>(i) == TtrPart::rma)
      ar.added(key, t.spent_ns[i]);
    else
      ar(key, t.spent_ns[i]);
  }
  state_fields(ar, t);
  ar("drained_at", t.drained_at);
  ar("returned_at", t.returned_at);
  ar("ended", t.ended);
  ar("messages", t.messages);
  ar.added("rma", t.rma);
}

namespace {

// Parts by name, and times that can be reckoned with.
struct Spelling {
  const model::Fabric& fabric;

  std::string text(const Entity& e) const {
    return e.kind == model::EntityKind::none ? "" : model::name(fabric, e);
  }
  Status read(const Token& token, Entity& e) const {
    e = {};
    if (token.text.empty()) return {};
    WEFT_TRY(e, model::find_entity(fabric, token));
    return {};
  }
  Status read(const Token& token, Timestamp& out) const {
    WEFT_TRY(const Timestamp t, parse_timestamp(token));
    WEFT_TRY_STATUS(check_range(t, token.where));
    out = t;
    return {};
  }
};

bool may_wait_for(OrderKind kind, Stage stage) {
  switch (kind) {
    case OrderKind::act:
      return does_act(stage);
    case OrderKind::look:
      return does_act(stage) || stage == Stage::failed;
    case OrderKind::forecast:
      return stage == Stage::proposed || stage == Stage::forecasting;
    case OrderKind::check:
    case OrderKind::snapshot:
    case OrderKind::notify:
      return true;
  }
  return true;
}

// What the machine relies on and fields alone do not say; "" when all is well.
std::string_view nonsense(const Ticket& t) {
  const bool acts = does_act(t.stage);
  if (t.id.empty() || t.cases.empty()) return "it has no case";
  if (acts != t.deed.has_value()) return "its stage and its action are inconsistent";
  if (t.pending && !may_wait_for(t.pending->kind, t.stage))
    return "it waits for what its stage does not order";
  if (t.deed && (t.deed->phase == ActionAttempt::Phase::asked) !=
                    (t.pending && t.pending->kind == OrderKind::act))
    return "its action and its order are inconsistent";
  if (t.stage != Stage::failed && t.is_reserved != needs_reserve(t, t.stage))
    return "its stage and its reserve are inconsistent";
  for (const Message& m : t.messages)
    if (m.is_pending && m.tries == 0) return "it waits for a message that was never sent";
  if (is_over(t.stage) && (t.is_reserved || t.pending || !t.ended))
    return "it has ended, but an action is in progress";
  if ((t.is_reserved || acts) && !t.has_part()) return "it has no drain target";
  if (t.stage == Stage::soaking && !t.returned_at) return "it was never returned";
  if (t.stage == Stage::rma &&
      (!t.rma || t.rma->from != (t.has_part() ? Stage::repairing : Stage::proposed)))
    return "its stage and its return to a vendor are inconsistent";
  for (const std::int64_t ns : t.spent_ns)
    if (ns < 0 || ns > spent_ns_max) return "a phase duration is out of range";
  if (t.snapshot && t.root.kind == model::EntityKind::none) return "a snapshot without a target";
  return "";
}

// A part in it that the fabric does not have, or had; "" where that is not what is wrong.
std::string gone_part(const model::Fabric& fabric, std::string_view text) {
  const auto line = JsonLine::parse(text, {});
  if (!line) return "";
  std::vector<std::string> parts{line->node().member("root").text().value_or(""),
                                 line->node().member("part").text().value_or("")};
  const JsonNode cases = line->node().member("cases");
  for (std::size_t i = 0; i < cases.size(); ++i)
    parts.push_back(cases.item(i).member("root").text().value_or(""));
  for (std::string& part : parts)
    if (!part.empty() && !model::find_entity(fabric, {part, {}})) return std::move(part);
  return "";
}

}  // namespace

std::string to_json(const model::Fabric& fabric, const Ticket& ticket) {
  return write_fields(ticket, Spelling{fabric});
}

std::string ticket_schema() { return schema_of_fields<Ticket, Spelling>(); }

Result<Ticket> read_ticket(const model::Fabric& fabric, std::string_view text) {
  const auto bad = [](std::string_view what) {
    return fail(Errc::parse, {}, fmt::format("not a repair ticket: {}", what),
                "it is damaged, or was written by another version or for another fabric");
  };
  auto read = read_fields<Ticket>(text, {}, Spelling{fabric});
  if (const std::string gone = read ? "" : gone_part(fabric, text); !gone.empty())
    return fail(Errc::unknown, {}, fmt::format("this fabric has no {}", quote(gone)),
                "it was written for another fabric");
  if (!read) return bad(read.error().text());
  if (const std::string_view what = nonsense(*read); !what.empty()) return bad(what);
  return read;
}

}  // namespace weft::operate::repair
