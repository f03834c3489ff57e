#include <fmt/format.h>

#include "base/json_line.hpp"
#include "observe/localise/localise.hpp"

namespace weft::observe::localise {
namespace {

class Writer {
 public:
  Writer(const Fabric& fabric, const Report& report)
      : fabric_(fabric),
        window_(
            fmt::format(R"("window":["{}","{}"])", to_text(report.begin), to_text(report.end))) {}

  std::string line(const Verdict& v) const {
    const bool suspect = v.needs_probes > 0;
    std::string out =
        fmt::format(R"({{"entity":{},"kind":"{}","probability":{:.4g},{},"needs_probes":{},)"
                    R"("entity_kind":"{}",)",
                    json_string(name(fabric_, v.entity)),
                    suspect ? "insufficient_evidence" : to_text(v.finding), v.probability, window_,
                    v.needs_probes, to_text(v.entity.kind));
    if (suspect) out += fmt::format(R"("suspected":"{}",)", to_text(v.finding));
    if (v.entity.kind == EntityKind::card)
      out += fmt::format(R"("flow":"{}",)", to_text(v.entity.flow));
    if (!v.traffic_class.empty())
      out += fmt::format(R"("class":{},)", json_string(v.traffic_class));
    out += fmt::format(R"("loss":{:.4g},"loss_interval":[{:.4g},{:.4g}],"probes":{},"lost":{:.1f})",
                       v.loss, v.loss_low, v.loss_high, v.probes, v.lost);
    if (!v.alternatives.empty()) {
      out += R"(,"alternatives":[)";
      for (const Entity& other : v.alternatives) out += json_string(name(fabric_, other)) + ",";
      out.back() = ']';
    }
    return out + "}\n";
  }

  std::string line(const Coverage& coverage) const {
    std::string out =
        fmt::format(R"({{"entity":"fabric","kind":"insufficient_evidence","probability":0,{},)"
                    R"("needs_probes":{},"entity_kind":"fabric","loss_of_interest":{:.4g},)"
                    R"("links":{},"links_short":{},"shortest":[)",
                    window_, coverage.needs_probes, coverage.loss_of_interest, coverage.links,
                    coverage.links_short);
    for (const LinkId link : coverage.shortest) out += json_string(fabric_.name(link)) + ",";
    if (out.back() == ',') out.pop_back();
    return out + "]}\n";
  }

 private:
  const Fabric& fabric_;
  std::string window_;
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
