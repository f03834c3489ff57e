#include "app/store/fabric_mark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::app {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t shown_max = 5;

Names without(const Names& all, const Names& others) {
  Names out;
  std::ranges::set_difference(all, others, std::back_inserter(out));
  return out;
}

std::span<const std::string> first_of(const Names& names) {
  return std::span(names).first(std::min(names.size(), shown_max));
}

// "12 (rtsw:8, rtsw:9, ...)".
std::string shown(const Names& names) {
  if (names.empty()) return "none";
  return fmt::format("{} ({}{})", names.size(), fmt::join(first_of(names), ", "),
                     names.size() > shown_max ? ", ..." : "");
}

std::string named(const std::string& name) { return name.empty() ? "no name" : quote(name); }

struct Difference {
  std::string name_was;
  bool is_renamed = false;
  std::size_t known = 0;
  Names gone, added;

  bool is_growth() const { return !is_renamed && gone.empty(); }
};

Difference difference_of(const FabricMark& known, const FabricMark& now) {
  return {.name_was = known.name,
          .is_renamed = !known.name.empty() && known.name != now.name,
          .known = known.parts.size(),
          .gone = without(known.parts, now.parts),
          .added = without(now.parts, known.parts)};
}

Status refuse(const Difference& d, const FabricMark& now) {
  std::string what = "the store is that of another fabric:";
  if (d.is_renamed)
    what += fmt::format(" its name is {}, this one has {};", named(d.name_was), named(now.name));
  what += fmt::format(" of {} parts not in this one: {}; new in this one: {}", d.known,
                      shown(d.gone), shown(d.added));
  return fail(Errc::infeasible, {"--store"}, std::move(what),
              "name the store of this fabric; if the fabric was changed on purpose: weft store "
              "accept FABRIC --store STORE");
}

std::string detail_of(const Difference& d, const FabricMark& now) {
  return JsonObject()
      .add("name", now.name)
      .add_if("name_was", d.is_renamed ? d.name_was : "")
      .add("parts", now.parts.size())
      .add("gone", d.gone.size())
      .add("added", d.added.size())
      .add("for_example", first_of(d.gone.empty() ? d.added : d.gone))
      .text();
}

}  // namespace

FabricMark mark_of(const model::Fabric& fabric, std::string name) {
  FabricMark out{.name = std::move(name), .parts = {}};
  for (const model::NodeId node : fabric.nodes())
    if (fabric.is_switch(node) || fabric.kind(node) == model::NodeKind::host)
      out.parts.push_back(fabric.name(node));
  for (const model::CableId cable : ids<model::CableId>(fabric.cable_count()))
    if (fabric.on_wire(model::forward(cable))) out.parts.push_back(fabric.name(cable));
  std::ranges::sort(out.parts);
  return out;
}

Status check_fabric(port::Store& store, const FabricMark& mark, IfChanged if_changed,
                    Timestamp now) {
  port::Commit commit{
      .documents = {{std::string(mark_kind), std::string(mark_id), now, write_fields(mark)}}};
  const auto kept = store.document(mark_kind, mark_id);
  if (!kept && kept.error().code != Errc::unknown) return std::unexpected(kept.error());
  if (kept) {
    WEFT_TRY(const FabricMark known, read_fields<FabricMark>(kept->body, {"the store's fabric"}));
    const Difference d = difference_of(known, mark);
    if (known.name == mark.name && d.gone.empty() && d.added.empty()) return {};
    if (!d.is_growth() && if_changed == IfChanged::refuse) return refuse(d, mark);
    commit.audit.push_back({0, now, "weft", "", d.is_growth() ? "fabric_grown" : "fabric_changed",
                            detail_of(d, mark)});
  }
  WEFT_TRY_STATUS(store.commit(commit));
  return {};
}

}  // namespace weft::app
