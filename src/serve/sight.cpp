#include "serve/sight.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_line.hpp"
#include "model/entity.hpp"

namespace weft::serve {

namespace localise = observe::localise;
using localise::EntityKind;
using localise::Finding;

namespace {

std::string_view kind_of(Finding finding) {
  switch (finding) {
    case Finding::loss:
    case Finding::class_loss:
    case Finding::tuple_loss:
      return "probe_loss";
    case Finding::congestion:
      return "probe_latency";
    case Finding::dead:
      return "probe_host";
    case Finding::starved:
    case Finding::unused:
    case Finding::unexpected:
      return "info";
  }
  return "info";
}

// In the grammar that records use: a card by its number, where its ports are one card.
std::string entity_name(const model::Fabric& fabric, const localise::Entity& entity) {
  if (entity.kind != EntityKind::card) return name(fabric, entity);
  const std::uint32_t ports = entity.port_last - entity.port_first + 1;
  const model::NodeId device(entity.id);
  return entity.port_first % ports == 0
             ? model::name(fabric, model::card_of(device, entity.port_first / ports))
             : std::string(fabric.name(device));
}

}  // namespace

Sight::Sight(const model::Fabric& fabric, const SightSettings& settings)
    : fabric_(fabric),
      settings_(settings),
      localiser_(fabric, {.card_ports = settings.card_ports}) {}

void Sight::add(const model::EvidenceSet& rows) {
  if (rows.rows.empty()) return;
  model::EvidenceSet names;
  names.classes = classes_;
  for (model::Evidence row : rows.rows) {
    row.traffic_class = names.class_index(rows.classes[row.traffic_class]);
    const auto path = rows.path(row);
    rows_.push_back({row, {path.begin(), path.end()}});
  }
  classes_ = std::move(names.classes);
  counts_.rows += rows.rows.size();
  for (; rows_.size() > settings_.rows_max; ++counts_.dropped) rows_.pop_front();
  has_new_ = true;
}

void Sight::forget() { rows_.clear(); }

std::vector<std::string> Sight::look(Timestamp now) {
  std::vector<std::string> out;
  if (now < next_ || !has_new_) return out;
  next_ = {now.ns + settings_.every_ns};
  has_new_ = false;
  const Timestamp oldest{now.ns - settings_.keep_ns};
  std::erase_if(rows_, [&](const Row& row) { return row.evidence.t < oldest; });
  if (rows_.empty()) return out;
  ++counts_.runs;
  const localise::Report report = localiser_.run(recent());
  for (const localise::Verdict& verdict : report.verdicts)
    if (verdict.probability >= settings_.probability) out.push_back(line(verdict, report, now));
  counts_.verdicts += out.size();
  return out;
}

model::EvidenceSet Sight::recent() const {
  model::EvidenceSet out;
  out.classes = classes_;
  for (const Row& row : rows_) {
    model::Evidence copy = row.evidence;
    out.set_path(copy, row.path);
    out.rows.push_back(copy);
  }
  return out;
}

std::string Sight::line(const localise::Verdict& verdict, const localise::Report& report,
                        Timestamp now) const {
  const std::string entity = entity_name(fabric_, verdict.entity);
  std::string out = fmt::format(
      R"({{"id":{},"t":"{}","source":"probe","entity":{},"kind":"{}","value":{:.6g},"attrs":{{)"
      R"("finding":"{}","probability":"{:.4f}","probes":"{}","lost":"{:.0f}","since":"{}")",
      json_string(fmt::format("sight-{}-{}", now.ns, entity)), to_text(now), json_string(entity),
      kind_of(verdict.finding), verdict.loss, localise::to_text(verdict.finding),
      verdict.probability, verdict.probes, verdict.lost, to_text(report.begin));
  if (!verdict.traffic_class.empty())
    out += fmt::format(R"(,"class":{})", json_string(verdict.traffic_class));
  return out + "}}";
}

}  // namespace weft::serve
