#include <array>

#include "base/json_text.hpp"
#include "observe/localise/localise.hpp"

namespace weft::observe::localise {
namespace {

class Writer {
 public:
  Writer(const Fabric& fabric, const Report& report)
      : fabric_(fabric), window_{report.begin, report.end} {}

  std::string line(const Verdict& v) const {
    const bool suspect = v.needs_probes > 0;
    JsonObject out;
    out.add("entity", name(fabric_, v.entity))
        .add("kind", suspect ? "insufficient_evidence" : to_text(v.finding))
        .add("probability", v.probability, digits(4))
        .add("window", window_)
        .add("needs_probes", v.needs_probes)
        .add("entity_kind", to_text(v.entity.kind));
    if (suspect) out.add("suspected", to_text(v.finding));
    if (v.entity.kind == EntityKind::card) out.add("flow", to_text(v.entity.flow));
    if (v.destination.valid()) out.add("destination", fabric_.name(v.destination));
    out.add_if("class", v.traffic_class)
        .add("loss", v.loss, digits(4))
        .add("loss_interval", std::array{v.loss_low, v.loss_high}, digits(4))
        .add("probes", v.probes)
        .add("lost", v.lost, decimals(1));
    JsonList alternatives;
    for (const Entity& other : v.alternatives) alternatives.add(name(fabric_, other));
    return out.add_if("alternatives", alternatives).text() + "\n";
  }

  std::string line(const Coverage& coverage) const {
    JsonList shortest;
    for (const LinkId link : coverage.shortest) shortest.add(fabric_.name(link));
    return JsonObject()
               .add("entity", "fabric")
               .add("kind", "insufficient_evidence")
               .add("probability", 0)
               .add("window", window_)
               .add("needs_probes", coverage.needs_probes)
               .add("entity_kind", "fabric")
               .add("loss_of_interest", coverage.loss_of_interest, digits(4))
               .add("links", coverage.links)
               .add("links_short", coverage.links_short)
               .add("shortest", shortest)
               .text() +
           "\n";
  }

 private:
  const Fabric& fabric_;
  std::array<Timestamp, 2> window_;
};

}  // namespace

std::string to_json_lines(const Fabric& fabric, const Report& report) {
  const Writer writer(fabric, report);
  std::string out;
  for (const Verdict& verdict : report.verdicts) out += writer.line(verdict);
  for (const Verdict& suspect : report.suspects) out += writer.line(suspect);
  if (report.coverage.links_short > 0) out += writer.line(report.coverage);
  return out;
}

}  // namespace weft::observe::localise
