// One list of fields serves both ways, so that they cannot come apart.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "operate/repair/ticket.hpp"

namespace weft::operate::repair {
namespace {

using nlohmann::json;

template <class Enum>
struct Names;  // text(), and how many there are
template <>
struct Names<Stage> {
  static constexpr std::size_t count = stage_count;
};
template <>
struct Names<Resolution> {
  static constexpr std::size_t count = resolution_count;
};
template <>
struct Names<OrderKind> {
  static constexpr std::size_t count = order_kind_count;
};
template <>
struct Names<CauseKind> {
  static constexpr std::size_t count = model::cause_kind_count;
};
template <>
struct Names<model::CaseState> {
  static constexpr std::size_t count = 3;
};
template <>
struct Names<port::Service> {
  static constexpr std::size_t count = port::service_count;
};
template <>
struct Names<port::ActionKind> {
  static constexpr std::size_t count = 2;
};
template <>
struct Names<Deed::Phase> {
  static constexpr std::size_t count = 4;
};

std::string_view to_text(Deed::Phase phase) {
  constexpr std::array<std::string_view, 4> names{"ask", "asked", "confirm", "doubt"};
  return names[static_cast<std::size_t>(phase)];
}

// Times and spans of documents are added to and subtracted from each other.
constexpr std::int64_t time_ns_max = 4'000'000'000'000'000'000;   // some 126 years from 1970
constexpr std::int64_t spent_ns_max = 1'000'000'000'000'000'000;  // some 31 years

// A value that is of the right JSON type and makes no sense: caught where the reading began.
[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

class Writer {
 public:
  explicit Writer(const model::Fabric& fabric) : fabric_(fabric) {}
  template <class T>
  void operator()(const char* key, T& value) {
    out[key] = put(value);
  }
  json out = json::object();

 private:
  template <class T>
  json put(T& value);
  json put(Entity& value) {
    return value.kind == model::EntityKind::none ? "" : model::name(fabric_, value);
  }
  json put(Timestamp& value) { return weft::to_text(value); }
  json put(port::Check& value) { return {{"sent", value.sent}, {"lost", value.lost}}; }
  template <class T>
  json put(std::optional<T>& value) {
    return value ? put(*value) : json(nullptr);
  }
  template <class T>
  json put(std::vector<T>& value) {
    json list = json::array();
    for (T& item : value) list.push_back(put(item));
    return list;
  }

  const model::Fabric& fabric_;
};

class Loader {
 public:
  Loader(const model::Fabric& fabric, const json& in) : fabric_(fabric), in_(in) {}
  template <class T>
  void operator()(const char* key, T& value) {
    take(in_.at(key), value);
  }

 private:
  template <class T>
  void take(const json& from, T& value);
  void take(const json& from, Entity& value) {
    const auto& name = from.get_ref<const std::string&>();
    value = {};
    if (name.empty()) return;
    const auto found = model::find_entity(fabric_, {name, {}});
    if (!found) refuse(found.error().what);
    value = *found;
  }
  void take(const json& from, Timestamp& value) {
    const auto t = parse_timestamp({from.get_ref<const std::string&>(), {}});
    if (!t) refuse(t.error().what);
    if (t->ns > time_ns_max || t->ns < -time_ns_max) refuse("a time is out of range");
    value = *t;
  }
  void take(const json& from, port::Check& value) {
    from.at("sent").get_to(value.sent);
    from.at("lost").get_to(value.lost);
  }
  template <class T>
  void take(const json& from, std::optional<T>& value) {
    if (from.is_null()) return value.reset();
    take(from, value.emplace());
  }
  template <class T>
  void take(const json& from, std::vector<T>& value) {
    if (!from.is_array()) refuse("a list is missing");
    value.clear();
    for (const json& item : from) take(item, value.emplace_back());
  }

  const model::Fabric& fabric_;
  const json& in_;
};

template <class Archive>
void fields(Archive& ar, Forecast& f) {
  ar("jobs", f.jobs);
  ar("stalled", f.stalled);
  ar("slowdown_max", f.slowdown_max);
  ar("worst", f.worst);
}

template <class Archive>
void fields(Archive& ar, Followed& f) {
  ar("id", f.id);
  ar("kind", f.kind);
  ar("root", f.root);
  ar("state", f.state);
  ar("confidence", f.confidence);
  ar("opened", f.opened);
  ar("is_open", f.is_open);
  ar("is_moved", f.is_moved);
  ar("told", f.told);
}

template <class Archive>
void fields(Archive& ar, Deed& d) {
  ar("kind", d.kind);
  ar("id", d.id);
  ar("phase", d.phase);
  ar("tries", d.tries);
  ar("since", d.since);
}

template <class Archive>
void fields(Archive& ar, Pending& p) {
  ar("id", p.id);
  ar("kind", p.kind);
  ar("since", p.since);
}

template <class Archive>
void fields(Archive& ar, Message& m) {
  ar("id", m.id);
  ar("case", m.case_id);
  ar("event", m.event);
  ar("summary", m.summary);
  ar("tries", m.tries);
  ar("due", m.due);
  ar("is_pending", m.is_pending);
}

template <class Archive>
void state_fields(Archive& ar, Ticket& t) {
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
  ar("checks_failed", t.checks_failed);
  ar("verifications", t.verifications);
  ar("check_at", t.check_at);
  ar("told_at", t.told_at);
  ar("rollbacks", t.rollbacks);
}

template <class Archive>
void fields(Archive& ar, Ticket& t) {
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
  for (std::size_t i = 0; i < ttr_part_count; ++i)
    ar(fmt::format("{}_ns", to_text(static_cast<TtrPart>(i))).c_str(), t.spent_ns[i]);
  state_fields(ar, t);
  ar("drained_at", t.drained_at);
  ar("returned_at", t.returned_at);
  ar("ended", t.ended);
  ar("messages", t.messages);
}

template <class T>
json Writer::put(T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(to_text(value));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    Writer inner(fabric_);
    fields(inner, value);
    return std::move(inner.out);
  }
}

template <class T>
void Loader::take(const json& from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& name = from.get_ref<const std::string&>();
    for (std::size_t i = 0; i < Names<T>::count; ++i)
      if (to_text(static_cast<T>(i)) == name) {
        value = static_cast<T>(i);
        return;
      }
    refuse(fmt::format("{} is not known", weft::quoted(name)));
  } else if constexpr (std::is_same_v<T, bool>) {
    value = from.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!from.is_number_integer()) refuse("a whole number is missing");
    const auto number = from.get<std::int64_t>();
    if (!std::in_range<T>(number)) refuse(fmt::format("{} is out of range", number));
    value = static_cast<T>(number);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    from.get_to(value);
  } else {
    Loader inner(fabric_, from);
    fields(inner, value);
  }
}

// What the machine relies on and fields alone do not say; "" when all is well.
std::string_view nonsense(const Ticket& t) {
  const bool acts =
      t.stage == Stage::draining || t.stage == Stage::returning || t.stage == Stage::undoing;
  if (t.id.empty() || t.cases.empty()) return "it names no case";
  if (acts != t.deed.has_value()) return "its stage and its action do not agree";
  if (t.pending && t.pending->kind == OrderKind::act && !acts) return "it awaits an act of nothing";
  if (is_over(t.stage) && (t.is_reserved || t.pending || !t.ended))
    return "it is over, and something is under way";
  if ((t.is_reserved || acts) && !t.has_part()) return "it drains nothing";
  if (t.stage == Stage::soaking && !t.returned_at) return "it was never returned";
  for (const std::int64_t ns : t.spent_ns)
    if (ns < 0 || ns > spent_ns_max) return "a part of its time is out of range";
  if (t.snapshot && t.root.kind == model::EntityKind::none) return "a snapshot of nothing";
  return "";
}

}  // namespace

std::string to_json(const model::Fabric& fabric, const Ticket& ticket) {
  Ticket copy = ticket;
  Writer writer(fabric);
  fields(writer, copy);
  return writer.out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Ticket> read_ticket(const model::Fabric& fabric, std::string_view text) {
  const auto bad = [](std::string what) {
    return fail(Errc::parse, {}, fmt::format("no ticket of a repair: {}", what),
                "it was damaged, or written by another version or for another fabric");
  };
  try {
    Ticket out;
    const json in = json::parse(text);
    Loader loader(fabric, in);
    fields(loader, out);
    if (const std::string_view what = nonsense(out); !what.empty()) return bad(std::string(what));
    return out;
  } catch (const std::exception& e) {
    return bad(e.what());
  }
}

}  // namespace weft::operate::repair
