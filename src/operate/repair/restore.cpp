// The machine's own document, and the way back from documents.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/check.hpp"
#include "base/text.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

using nlohmann::json;

json time_json(Timestamp t) { return weft::to_text(t); }

// Throws: the caller's try block makes an error of it.
Timestamp time_of(const json& from) {
  const auto t = parse_timestamp({from.get_ref<const std::string&>(), {}});
  if (!t) throw std::invalid_argument(t.error().what);
  if (const Status fits = check_range(*t); !fits) throw std::invalid_argument(fits.error().what);
  return *t;
}

// Documents of an older version say when, not what; so do those of a part that is gone since.
PastDrain drain_of(const model::Fabric& fabric, const json& from) {
  if (from.is_string()) return {time_of(from), {}};
  PastDrain out{time_of(from.at("t")), {}};
  const auto part = model::find_entity(fabric, {from.at("part").get_ref<const std::string&>(), {}});
  if (part) out.part = *part;
  return out;
}

// Of a ticket that cannot be read as a whole.
bool is_over_in(std::string_view body) {
  const json ticket = json::parse(body, nullptr, false);
  const auto stage = from_name<Stage>({ticket.value("stage", ""), {}});
  return stage && is_over(*stage);
}

Error with_id(Error error, std::string_view id) {
  error.what = fmt::format("document {}: {}", quote(id), error.what);
  return error;
}

}  // namespace

std::string Repair::machine_json() const {
  json out = {{"kill_switch", machine_.kill_switch == Switch::on},
              {"serial", machine_.serial},
              {"muted", machine_.muted},
              {"freezes", json::array()},
              {"drains", json::array()},
              {"past", json::array()},
              {"outside", json::array()}};
  for (const Freeze& f : machine_.freezes)
    out["freezes"].push_back({{"from", time_json(f.from)},
                              {"until", time_json(f.until)},
                              {"why", f.why},
                              {"who", f.who}});
  for (const PastDrain& d : machine_.drains)
    out["drains"].push_back(d.part.kind == model::EntityKind::none
                                ? time_json(d.t)
                                : json{{"t", time_json(d.t)}, {"part", name(fabric_, d.part)}});
  for (const Past& p : machine_.past)
    out["past"].push_back({{"t", time_json(p.t)}, {"part", p.part}});
  for (const Entity& e : machine_.outside) out["outside"].push_back(name(fabric_, e));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Status Repair::read_machine(std::string_view text) {
  try {
    const json in = json::parse(text);
    machine_.kill_switch = in.at("kill_switch").get<bool>() ? Switch::on : Switch::off;
    in.at("serial").get_to(machine_.serial);
    for (const json& id : in.at("muted")) machine_.muted.insert(id.get<std::string>());
    for (const json& f : in.at("freezes"))
      machine_.freezes.push_back({time_of(f.at("from")), time_of(f.at("until")),
                                  f.at("why").get<std::string>(), f.at("who").get<std::string>()});
    for (const json& d : in.at("drains")) machine_.drains.push_back(drain_of(fabric_, d));
    for (const json& p : in.at("past"))
      machine_.past.push_back({time_of(p.at("t")), p.at("part").get<std::string>()});
    for (const json& e : in.at("outside")) {
      const auto& part = e.get_ref<const std::string&>();
      if (const auto found = model::find_entity(fabric_, {part, {}}))
        machine_.outside.push_back(*found);
    }
    return {};
  } catch (const std::exception& e) {
    return fail(Errc::parse, {}, fmt::format("not a repair service state: {}", e.what()),
                "it is damaged, or was written by another version");
  }
}

Status Repair::restore(std::span<const port::Document> documents, Timestamp now) {
  advance_clock(now);
  std::uint64_t serial = 0;
  for (const port::Document& document : documents) {
    if (document.kind != document_kind) continue;
    if (document.id == machine_id) {
      if (auto done = read_machine(document.body); !done)
        return std::unexpected(with_id(std::move(done.error()), document.id));
      continue;
    }
    auto read = read_ticket(fabric_, document.body);
    if (!read && read.error().code == Errc::unknown) {
      if (is_over_in(document.body)) continue;  // of a part that the fabric had
      read.error().hint =
          "this repair is under way: start weft with the fabric that has the part, and finish or "
          "reject it";
    }
    if (!read) return std::unexpected(with_id(std::move(read.error()), document.id));
    serial = std::max(serial, read->serial);
    const std::string id = read->id;
    tickets_.insert_or_assign(id, *std::move(read));
  }
  machine_.serial = std::max(machine_.serial, serial);
  // A case's ticket is the newest of those under way: cases that come back may join an old one.
  std::map<std::pair<bool, std::uint64_t>, const Ticket*> by_serial;
  for (const auto& [id, ticket] : tickets_)
    by_serial[{!is_over(ticket.stage), ticket.serial}] = &ticket;
  for (const auto& [number, ticket] : by_serial)
    for (const Followed& c : ticket->cases)
      if (!c.is_moved || !ticket_of_case_.contains(c.id)) ticket_of_case_[c.id] = ticket->id;
  for (auto& [id, ticket] : tickets_) {
    if (is_over(ticket.stage)) ended_.emplace(ticket.ended.value_or(now_), id);
    if (is_over(ticket.stage) && ticket.messages.empty()) continue;
    active_.insert(id);
    Driver(*this).take_up(ticket);
  }
  WEFT_CHECK(active_.size() + ended_.size() >= tickets_.size());
  return {};
}

}  // namespace weft::operate::repair
