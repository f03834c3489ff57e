#include "adapt/lab/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "adapt/lab/fault_book.hpp"
#include "adapt/lab/fault_means.hpp"
#include "adapt/lab/wire.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

bool shares_entity(const FaultRecord& a, const FaultRecord& b) {
  return std::ranges::any_of(a.entities, [&](const std::string& entity) {
    return std::ranges::find(b.entities, entity) != b.entities.end();
  });
}

// What only one fault at a time can hold on one entity: two that set the same thing could not be
// healed one by one.
bool is_exclusive(Means means) {
  return means == Means::carrier || means == Means::flapper || means == Means::daemon ||
         means == Means::power || means == Means::icmp || means == Means::shaper;
}
// A link that is down cannot also flap.
Means slot_of(const FaultSpec& spec) {
  const Means means = means_of(spec);
  return means == Means::flapper ? Means::carrier : means;
}

bool is_same(const FaultRecord& a, const FaultRecord& b) {
  FaultSpec spec = a.spec;
  spec.target = b.spec.target;  // a cable has several names
  return spec == b.spec && a.entities == b.entities;
}

Status check_conflicts(const FaultBook& book, const FaultRecord& wanted) {
  std::size_t present = 0;
  for (const FaultRecord& record : book.records) {
    if (record.phase == FaultPhase::over) continue;
    ++present;
    if (is_same(record, wanted))
      return fail(Errc::infeasible, {},
                  fmt::format("this fault is already active, as {}", record.id),
                  fmt::format("heal it first: weft lab heal {}", record.id));
    const Means slot = slot_of(wanted.spec);
    const bool same_daemon = slot != Means::daemon || record.spec.daemon == wanted.spec.daemon;
    if (is_exclusive(slot) && slot_of(record.spec) == slot && same_daemon &&
        shares_entity(record, wanted))
      return fail(Errc::infeasible, {},
                  fmt::format("{} ({}) already applies to {}", record.id, to_text(record.spec.kind),
                              record.entities.front()),
                  fmt::format("heal it first: weft lab heal {}", record.id));
  }
  if (present >= faults_at_once_max)
    return fail(Errc::infeasible, {}, fmt::format("there are already {} faults", present),
                "heal some first");
  if (book.records.size() >= fault_records_max)
    return fail(Errc::infeasible, {},
                fmt::format("this lab has had {} faults", book.records.size()),
                "take it down and bring it up again");
  return {};
}

bool has_site(const FaultTarget& target, const FaultSite& site) {
  return std::ranges::any_of(target.sites,
                             [&](const FaultSite& other) { return other.end == site.end; });
}

// Behind all wires that stand on the same interfaces: frames pass them in order of age.
Result<std::uint8_t> next_wire_index(const Lab& lab, const FaultBook& book,
                                     const FaultTarget& target) {
  unsigned index = 0;
  for (const FaultRecord& record : book.records) {
    if (record.phase == FaultPhase::over || record.wire_index <= index) continue;
    WEFT_TRY(const FaultTarget other, find_target(lab.fabric, lab.plan, record.spec));
    if (std::ranges::any_of(target.sites,
                            [&](const FaultSite& site) { return has_site(other, site); }))
      index = record.wire_index;
  }
  if (index >= wire_index_max)
    return fail(Errc::infeasible, {}, "too many wires in series on one interface",
                "heal some first");
  return static_cast<std::uint8_t>(index + 1);
}

// Whether a fault other than `id` wants the interface down. A flapper sees to its own.
bool is_held_down(const Lab& lab, const FaultBook& book, const std::string& id,
                  const FaultSite& site) {
  return std::ranges::any_of(book.records, [&](const FaultRecord& record) {
    if (record.phase == FaultPhase::over || record.id == id) return false;
    const Means means = means_of(record.spec);
    if (means != Means::carrier && means != Means::power) return false;
    const auto target = find_target(lab.fabric, lab.plan, record.spec);
    if (!target) return false;
    return means == Means::carrier ? target->sites.front().end == site.end
                                   : has_site(*target, site);
  });
}

Status take_out(const Lab& lab, const FaultBook& book, const FaultTarget& target,
                const FaultRecord& record) {
  return undo(lab, target, record,
              [&](const FaultSite& site) { return is_held_down(lab, book, record.id, site); });
}

Status heal_one(const Lab& lab, const FaultBook& book, FaultRecord& record) {
  WEFT_TRY(const FaultTarget target, find_target(lab.fabric, lab.plan, record.spec));
  // What a wire drops while it ends counts too; a filter's counter goes with it.
  const bool outlives = means_of(record.spec) == Means::wire;
  if (!outlives) record.hits = count_hits(lab, target, record);
  WEFT_TRY_STATUS(take_out(lab, book, target, record));
  if (outlives) record.hits = count_hits(lab, target, record);
  record.phase = FaultPhase::over;
  record.end = now_text();
  return {};
}

}  // namespace

Result<FaultRecord> inject_fault(const Lab& lab, const FaultSpec& spec) {
  WEFT_TRY(const FaultTarget target, find_target(lab.fabric, lab.plan, spec));
  WEFT_TRY(FaultBook book, FaultBook::open(lab.directory));
  FaultRecord record{.id = fmt::format("f{}", book.records.size() + 1),
                     .spec = spec,
                     .entities = target.entities,
                     .start = now_text()};
  if (spec.kind == FaultKind::blackhole)  // a destination has several names, too
    record.spec.destination =
        fmt::format("{}/{}", ipv4_text(target.destination), target.prefix_length);
  WEFT_TRY_STATUS(check_conflicts(book, record));
  if (means_of(spec) == Means::wire) {
    WEFT_TRY(record.wire_index, next_wire_index(lab, book, target));
  }
  WEFT_TRY_STATUS(prepare(lab, target, record));
  book.records.push_back(record);
  WEFT_TRY_STATUS(book.save());
  if (const Status applied = apply(lab, target, record); !applied) {
    // What cannot be undone stays written down, for heal and `down` to try again.
    if (take_out(lab, book, target, record)) book.records.pop_back();
    WEFT_TRY_STATUS(book.save());
    return std::unexpected(applied.error());
  }
  book.records.back().start = now_text();
  book.records.back().phase = FaultPhase::active;
  WEFT_TRY_STATUS(book.save());
  return book.records.back();
}

Result<std::vector<FaultRecord>> heal_faults(const Lab& lab, std::string_view which) {
  WEFT_TRY(FaultBook book, FaultBook::open(lab.directory));
  std::vector<FaultRecord> healed;
  std::vector<std::string> present;
  Errors errors;
  // The youngest first, as what was laid on last comes off first.
  for (std::size_t i = book.records.size(); i-- > 0;) {
    FaultRecord& record = book.records[i];
    if (record.phase == FaultPhase::over) continue;
    present.push_back(record.id);
    if (which != "all" && which != record.id) continue;
    if (auto done = heal_one(lab, book, record); !done) {
      done.error().what = fmt::format("{}: {}", record.id, done.error().what);
      errors.push_back(std::move(done).error());
    } else {
      healed.push_back(record);
    }
  }
  WEFT_TRY_STATUS(book.save());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (healed.empty() && which != "all")
    return fail(
        Errc::unknown, {},
        fmt::format("fault {} does not exist{}", quote(which), did_you_mean(which, present)),
        present.empty() ? "there are no faults"
                        : fmt::format("there are {}", fmt::join(present, ", ")));
  return healed;
}

Result<std::vector<FaultRecord>> list_faults(const Lab& lab) {
  WEFT_TRY(FaultBook book, FaultBook::open(lab.directory));
  bool changed = false;
  for (FaultRecord& record : book.records) {
    if (record.phase != FaultPhase::active) continue;
    WEFT_TRY(const FaultTarget target, find_target(lab.fabric, lab.plan, record.spec));
    record.hits = count_hits(lab, target, record);
    if (means_of(record.spec) == Means::flapper && !has_process(lab, record)) {
      WEFT_TRY_STATUS(heal_one(lab, book, record));
      changed = true;
    }
  }
  if (changed) WEFT_TRY_STATUS(book.save());
  return std::move(book.records);
}

}  // namespace weft::adapt::lab
