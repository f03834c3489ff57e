#include "serve/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "base/json_line.hpp"
#include "model/events/entity.hpp"
#include "observe/telemetry/syslog_reader.hpp"
#include "operate/repair/reserve.hpp"
#include "serve/listing.hpp"
#include "serve/metric_text.hpp"

namespace weft::serve {

namespace repair = operate::repair;
using model::Fabric;
using model::LinkId;
using model::NodeId;

namespace {

constexpr std::size_t cables_max = 100'000;      // of one pair of roles
constexpr std::size_t link_metrics_max = 1'000;  // of them as metrics
constexpr std::size_t unknown_max = 200, unknown_bytes_max = 400;
constexpr std::size_t events_max = 500'000;          // looked through for records
constexpr std::int64_t arrival_ns = ns_per_s * 600;  // so late a record may come

std::string rack_of(const Fabric& fabric, NodeId node) {
  const model::ScopeId rack = fabric.enclosing(node, model::ScopeKind::rack);
  return rack.valid() ? fabric.name(rack) : "";
}

// Where a record about this comes from; invalid where that is no device.
NodeId device_of(const Fabric& fabric, const model::Entity& entity) {
  switch (entity.kind) {
    case model::EntityKind::node:
    case model::EntityKind::card:
      return NodeId(entity.id);
    case model::EntityKind::port:
    case model::EntityKind::link:
      return fabric.from(LinkId(entity.id));
    case model::EntityKind::cable:
    case model::EntityKind::scope:
    case model::EntityKind::none:
      break;
  }
  return {};
}

std::string tier_json(const Fabric& fabric, const Fabric::Tier& tier) {
  const auto ends = [&](model::RoleId role) {
    JsonList out;
    for (const NodeId node : fabric.role(role).nodes) out.add(fabric.name(node));
    return out;
  };
  std::map<std::array<std::uint32_t, 2>, std::uint32_t> cells;  // parallel cables are one cell
  for (const LinkId link : tier.links)
    if (link == forward(cable_of(link)))
      ++cells[{fabric.role_index(fabric.from(link)), fabric.role_index(fabric.to(link))}];
  JsonList racks, cables;
  for (const NodeId node : fabric.role(tier.from).nodes) racks.add(rack_of(fabric, node));
  std::size_t left = cables_max;
  for (const auto& [ends_at, count] : cells)
    if (left > 0) cables.add(std::array{ends_at[0], ends_at[1], count}), --left;
  return JsonObject()
      .add("rows", fabric.role(tier.from).name)
      .add("columns", fabric.role(tier.to).name)
      .add("row_names", ends(tier.from))
      .add("column_names", ends(tier.to))
      .add("racks", racks)
      .add("cables", cables)
      .add("left_out", cells.size() > cables_max ? cells.size() - cables_max : 0)
      .text();
}

}  // namespace

std::string fabric_view(const Fabric& fabric) {
  JsonList tiers;
  JsonObject roles;
  for (const Fabric::Role& role : fabric.roles()) roles.add(role.name, role.nodes.size());
  for (const Fabric::Tier& tier : fabric.tiers()) {
    const auto is_switch = [&](model::RoleId role) {
      return fabric.role(role).kind == model::NodeKind::fabric_switch;
    };
    const bool is_forward = std::ranges::any_of(
        tier.links, [](LinkId link) { return link == forward(cable_of(link)); });
    if (is_forward && is_switch(tier.from) && is_switch(tier.to))
      tiers.add(JsonText{tier_json(fabric, tier)});
  }
  return JsonObject().add("roles", roles).add("tiers", tiers).text();
}

CapacityView capacity_view(const repair::Repair& repair, Timestamp now) {
  const Fabric& fabric = repair.fabric();
  const repair::GuardPolicy& guards = repair.policy().guards;
  CapacityView out{.now = now,
                   .kill_switch = repair.kill_switch() == repair::Switch::on,
                   .rack_share = guards.rack_share,
                   .plane_share = guards.plane_share,
                   .demand_share = guards.demand_share,
                   .out_max = guards.total_max};
  repair::Gone gone(fabric);
  for (const model::Entity& part : repair.held()) {
    gone.add(part);
    out.out.push_back(name(fabric, part));
  }
  for (const model::Entity& part : repair.moving()) out.moving.push_back(name(fabric, part));
  const repair::Reserve& reserve = repair.reserve();
  const auto now_left = reserve.uplinks(gone);
  for (const model::Entity& part : repair.suspected()) {
    gone.add(part);
    out.suspected.push_back(name(fabric, part));
  }
  const auto then_left = reserve.uplinks(gone);
  for (std::size_t i = 0; i < now_left.size(); ++i) {
    if (then_left[i].share() >= 1)
      ++out.groups_whole;
    else
      out.groups.push_back({now_left[i].name, now_left[i].whole, now_left[i].live,
                            now_left[i].share(), then_left[i].share()});
  }
  std::ranges::stable_sort(out.groups, {}, [](const CapacityRow& row) {
    return std::tuple(row.share, row.share_without_suspects);
  });
  for (const auto* freezes : {&repair.freezes(), &repair.policy().freezes})
    std::ranges::copy_if(*freezes, std::back_inserter(out.frozen),
                         [&](const repair::Freeze& f) { return f.until > now; });
  return out;
}

std::string to_json(const CapacityView& view) {
  JsonList frozen, groups;
  for (const repair::Freeze& freeze : view.frozen)
    frozen.add(JsonObject()
                   .add("from", freeze.from)
                   .add("until", freeze.until)
                   .add("why", freeze.why)
                   .add("who", freeze.who));
  for (const CapacityRow& row : view.groups)
    groups.add(JsonObject()
                   .add("name", row.name)
                   .add("cables", row.cables)
                   .add("live", row.live)
                   .add("share", row.share, decimals(4))
                   .add("share_without_suspects", row.share_without_suspects, decimals(4)));
  return JsonObject()
      .add("now", view.now)
      .add("kill_switch", view.kill_switch)
      .add("rack_share", view.rack_share, digits(4))
      .add("plane_share", view.plane_share, digits(4))
      .add("demand_share", view.demand_share, digits(4))
      .add("out_max", view.out_max)
      .add("out", view.out)
      .add("moving", view.moving)
      .add("suspected", view.suspected)
      .add("frozen", frozen)
      .add("groups", groups)
      .add("groups_whole", view.groups_whole)
      .text();
}

std::string to_json(const Fabric& fabric, const NetworkView& view, const PastFacts* past) {
  JsonList out, cases, links;
  for (const NetworkView::Out& row : view.out)
    out.add(JsonObject().add("part", row.part).add("by", row.by).add("since", row.since));
  for (const NetworkView::Open& row : view.cases)
    cases.add(JsonObject()
                  .add("id", row.id)
                  .add("kind", row.kind)
                  .add("entity", row.entity)
                  .add("standing", row.standing));
  for (const auto& [link, of] : view.links)
    links.add(JsonObject()
                  .add("link", fabric.name(link))
                  .add("rate", of.rate, digits(4))
                  .add("loss", of.loss, digits(4)));
  return JsonObject()
      .add("at", view.at)
      .add("out", out)
      .add("cases", cases)
      .add("links", links)
      .add("past", JsonText{past == nullptr ? "null" : to_json(*past)})
      .text();
}

void ProbeCount::add(std::uint64_t more, std::uint64_t of_them_lost, double p99) {
  sent += more;
  lost += of_them_lost;
  p99_us = std::max(p99_us, p99);
}

std::string to_json(const ProbeView& view) {
  const auto count = [](JsonObject& out, const ProbeCount& c) -> JsonObject& {
    return out.add("sent", c.sent).add("lost", c.lost).add("p99_us", c.p99_us, digits(4));
  };
  JsonList pairs, links;
  for (const auto& [racks, of] : view.pairs) {
    JsonObject row;
    pairs.add(count(row.add("from", racks[0]).add("to", racks[1]), of));
  }
  for (const ProbeView::Link& link : view.links) {
    JsonObject row;
    links.add(count(row.add("link", link.name), link.count));
  }
  return JsonObject()
      .add("from", view.from)
      .add("to", view.to)
      .add("rows", view.rows)
      .add("rows_without_path", view.rows_without_path)
      .add("links_all", view.links_all)
      .add("links_probed", view.links_probed)
      .add("racks", view.racks)
      .add("pairs", pairs)
      .add("links", links)
      .text();
}

void FeedLog::add(const model::RecordSet& records) {
  for (const model::Record& row : records.rows) {
    const std::string_view text =
        row.kind == model::EventKind::info ? records.attribute(row, "message") : "";
    const NodeId node = device_of(fabric_, row.entity);
    if (node.valid()) {
      Speaker& who = speakers_[{node.value, static_cast<std::uint32_t>(row.source)}];
      ++who.lines;
      who.last = std::max(who.last, row.received);
    }
    const std::string device(node.valid() ? fabric_.name(node) : "not in the fabric");
    if (!text.empty()) add_unknown(device, text, row.received);
    if (row.kind == model::EventKind::info)
      if (const std::string_view kind = records.attribute(row, "kind"); !kind.empty())
        add_unknown(device, fmt::format("the kind {} is not known", quote(kind)), row.received);
    if (row.entity.kind != model::EntityKind::none) continue;
    if (const std::string_view entity = records.attribute(row, "entity"); !entity.empty())
      add_unknown(device, fmt::format("{} is not in the fabric", quote(entity)), row.received);
  }
}

void FeedLog::add_ignored(const model::Evidence& row, Timestamp received) {
  add_unknown(std::string(fabric_.name(row.src)),
              fmt::format("probe results of {} came {} s before their time and are not used: set "
                          "its clock",
                          fabric_.name(row.src), (row.t.ns - received.ns) / ns_per_s),
              received);
}

void FeedLog::add_prober(NodeId node, Timestamp received) {
  Speaker& who = speakers_[{node.value, model::source_count}];
  ++who.lines;
  who.last = std::max(who.last, received);
}

void FeedLog::add_unknown(std::string device, std::string_view text, Timestamp received) {
  text = text.substr(0, unknown_bytes_max);
  std::string shape;  // the same message with other numbers is the same
  for (const char c : text)
    if (const bool is_digit = c >= '0' && c <= '9'; !is_digit)
      shape += c;
    else if (shape.empty() || shape.back() != '#')
      shape += '#';
  auto at = unknown_.find(shape);
  if (at == unknown_.end() && unknown_.size() >= unknown_max) {
    ++unknown_left_out_;
    return;
  }
  if (at == unknown_.end()) at = unknown_.emplace(std::move(shape), Unknown{}).first;
  at->second.device = std::move(device);
  at->second.text = text;
  ++at->second.count.lines;
  at->second.count.last = received;
}

std::string FeedLog::json() const {
  JsonList speakers, unknown;
  for (const auto& [key, who] : speakers_)
    speakers.add(JsonObject()
                     .add("device", fabric_.name(NodeId(key[0])))
                     .add("source", key[1] == model::source_count
                                        ? std::string_view("evidence")
                                        : to_text(static_cast<model::Source>(key[1])))
                     .add("lines", who.lines)
                     .add("last", who.last));
  for (const auto& [shape, of] : unknown_)
    unknown.add(JsonObject()
                    .add("device", of.device)
                    .add("text", of.text)
                    .add("lines", of.count.lines)
                    .add("last", of.count.last));
  std::set<std::uint32_t> heard;
  for (const auto& [key, who] : speakers_) heard.insert(key[0]);
  JsonList silent;
  for (const NodeId node : fabric_.nodes())
    if (fabric_.is_switch(node) && !heard.contains(node.value)) silent.add(fabric_.name(node));
  return JsonObject()
      .add("speakers", speakers)
      .add("silent_switches", silent)
      .add("unknown", unknown)
      .add("unknown_left_out", unknown_left_out_)
      .text();
}

std::string network_metrics(const ProbeView& probes, const CapacityView& capacity,
                            const std::map<std::string, std::uint64_t>& cases_by_kind) {
  MetricText out;
  std::vector<ProbeCount> racks(probes.racks.size());  // as the receiving end
  for (const auto& [pair, of] : probes.pairs) racks[pair[1]].add(of.sent, of.lost, of.p99_us);
  const auto share = [](const ProbeCount& c) {
    return c.sent == 0 ? 0.0 : static_cast<double>(c.lost) / static_cast<double>(c.sent);
  };
  out.family("rack_loss_ratio", "Share of recent probes to a rack that were lost.");
  for (std::size_t i = 0; i < racks.size(); ++i)
    if (racks[i].sent > 0) out.row(share(racks[i]), {{"rack", probes.racks[i]}});
  out.family("rack_rtt_p99_seconds", "Largest p99 of a recent flow of probes to a rack.");
  for (std::size_t i = 0; i < racks.size(); ++i)
    if (racks[i].p99_us >= 0) out.row(racks[i].p99_us / 1e6, {{"rack", probes.racks[i]}});
  out.family("link_loss_ratio", "Share lost of recent probes over a link; links with losses.");
  for (std::size_t i = 0; i < std::min(probes.links.size(), link_metrics_max); ++i)
    if (const auto& [link, count] = probes.links[i]; count.lost > 0)
      out.row(share(count), {{"link", link}});
  out.family("links", "Links of the network, and those that recent probes crossed.");
  out.row(static_cast<double>(probes.links_all), {{"which", "all"}});
  out.row(static_cast<double>(probes.links_probed), {{"which", "probed"}});
  out.family("part_state", "1 for each part that is out of service or suspected.");
  for (const std::string& part : capacity.out) out.row(1, {{"part", part}, {"state", "out"}});
  for (const std::string& part : capacity.suspected)
    out.row(1, {{"part", part}, {"state", "suspected"}});
  out.family("uplink_capacity_ratio",
             "Share of uplink capacity in service; groups that lack some.");
  for (const CapacityRow& row : capacity.groups) out.row(row.share, {{"group", row.name}});
  out.family("parts_out", "Parts out of service by weft.");
  out.row(static_cast<double>(capacity.out.size()), {});
  out.family("cases_open_by_kind", "Open cases by type of problem.");
  for (const auto& [kind, cases] : cases_by_kind)
    out.row(static_cast<double>(cases), {{"kind", kind}});
  return out.take();
}

namespace {

// The number in "e17", as records without an id of their own are called; 0: it is another name.
std::uint64_t number_of(std::string_view id) {
  std::uint64_t out = 0;
  if (id.size() < 2 || id.size() > 19 || id[0] != 'e' || id[1] == '0') return 0;
  for (const char c : id.substr(1)) {
    if (c < '0' || c > '9') return 0;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

std::string own_id(const port::StoredEvent& event) {
  if (event.feed != "record") return "";
  const auto line = JsonLine::parse(event.line, {});
  return line ? line->node().member("id").text().value_or("") : "";
}

// The line, and what it was taken for.
std::string record_json(const RecordReaders& readers, const std::string& id,
                        const port::StoredEvent& event) {
  JsonObject out;
  out.add("id", id)
      .add("seq", event.seq)
      .add("received", event.received)
      .add("feed", event.feed)
      .add("line", event.line);
  model::RecordSet set;
  if (event.feed == "record") {
    model::RecordLines lines(readers.fabric);
    if (lines.add(event.line, {})) set = lines.take();
  } else if (event.feed == "syslog") {
    observe::telemetry::SyslogReader reader(readers.inventory, readers.catalogue, {});
    reader.take_captured(event.line);
    set = reader.take_records();
  }
  if (!set.rows.empty())
    out.add("record", JsonText{to_json(readers.fabric, set, set.rows.front())});
  return std::move(out).text();
}

}  // namespace

Result<std::string> records_view(const RecordReaders& readers, port::Store& store,
                                 const RecordWish& wish, std::uint64_t event) {
  std::map<std::string, std::string, std::less<>> found;
  std::set<std::string, std::less<>> wanted;
  for (const std::string& id : wish.ids) {
    const std::uint64_t number = number_of(id);
    if (number == 0) {
      wanted.insert(id);
      continue;
    }
    WEFT_TRY(const auto rows, store.events(number, 1));
    if (!rows.empty() && rows.front().seq == number && own_id(rows.front()).empty())
      found[id] = record_json(readers, id, rows.front());
    else
      wanted.insert(id);  // somebody called a record so
  }
  for (std::size_t looked_at = 0; !wanted.empty() && looked_at < events_max;) {
    WEFT_TRY(const auto rows, store.events(event, event_rows));
    if (rows.empty()) break;
    event = rows.back().seq + 1;
    looked_at += rows.size();
    for (const port::StoredEvent& row : rows) {
      if (wanted.size() == 1 && row.line.find(*wanted.begin()) == std::string::npos) continue;
      if (const auto at = wanted.find(own_id(row)); at != wanted.end()) {
        found[*at] = record_json(readers, *at, row);
        wanted.erase(at);
      }
    }
    if (rows.back().received.ns - arrival_ns > wish.until.ns) break;
  }
  JsonList items, missing;
  for (const std::string& id : wish.ids) {
    if (const auto at = found.find(id); at != found.end())
      items.add(JsonText{at->second});
    else
      missing.add(id);
  }
  return JsonObject().add("items", items).add("missing", missing).text();
}

}  // namespace weft::serve
