#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "plan/backbone/entitle.hpp"

namespace weft::plan::backbone {
namespace {

// "a>b", "a>*", "a;b>c".
std::string ends_text(const Wan& wan, const Contract& contract) {
  std::string peers = "*";
  if (contract.peers.size() + 1 < wan.sites.size() || !contract.is_hose) {
    std::vector<std::string_view> names;
    for (const std::uint32_t peer : contract.peers) names.push_back(wan.sites[peer]);
    peers = fmt::format("{}", fmt::join(names, ";"));
  }
  const std::string& site = wan.sites[contract.site];
  return contract.into ? fmt::format("{}>{}", peers, site) : fmt::format("{}>{}", site, peers);
}

std::string share_text(double share) { return fmt::format("{:.4f} %", 100 * share); }

std::string why_text(const Verdict& verdict) {
  if (verdict.granted) return "granted";
  std::string out = "REFUSED: " + verdict.scenario;
  if (verdict.scenario_share > 0) out += fmt::format(" ({})", share_text(verdict.scenario_share));
  if (!verdict.link.empty()) return out + fmt::format(", {} is full", verdict.link);
  return verdict.scenario_share > 0 ? out + ", a site cannot be reached" : out;
}

}  // namespace

std::string to_table(const Wan& wan, const std::vector<Contract>& contracts,
                     const Entitlements& answer) {
  Table table({{"contract", Table::Align::left},
               {"class"},
               {"from>to", Table::Align::left},
               {"Gbit/s"},
               {"asked"},
               {"has"},
               {"", Table::Align::left}});
  std::size_t granted = 0;
  double gbps = 0;
  for (const std::uint32_t c : answer.order) {
    const Contract& contract = contracts[c];
    const Verdict& verdict = answer.verdicts[c];
    granted += verdict.granted ? 1 : 0;
    gbps += verdict.granted ? contract.gbps : 0;
    table.add({contract.name, std::to_string(contract.priority + 1), ends_text(wan, contract),
               fmt::format("{:g}", contract.gbps), share_text(contract.availability),
               share_text(verdict.availability), why_text(verdict)});
  }
  return table.text() +
         fmt::format("\n{} of {} contracts granted, {:g} Gbit/s; {} scenarios for {} of the time\n",
                     granted, contracts.size(), gbps, answer.scenarios, share_text(answer.covered));
}

std::string to_json(const Wan& wan, const std::vector<Contract>& contracts,
                    const Entitlements& answer) {
  JsonList list;
  for (const std::uint32_t c : answer.order) {
    const Verdict& verdict = answer.verdicts[c];
    JsonObject one;
    one.add("contract", contracts[c].name)
        .add("class", contracts[c].priority + 1)
        .add("ends", ends_text(wan, contracts[c]))
        .add("rate_bps", bps(contracts[c].gbps))
        .add("asked", contracts[c].availability)
        .add("availability", verdict.availability)
        .add("granted", verdict.granted);
    if (!verdict.granted)
      one.add("scenario", verdict.scenario)
          .add("scenario_share", verdict.scenario_share)
          .add("link", verdict.link);
    list.add(one);
  }
  return JsonObject()
             .add("contracts", list)
             .add("scenarios", answer.scenarios)
             .add("covered", answer.covered)
             .add("programs", answer.programs)
             .text() +
         "\n";
}

}  // namespace weft::plan::backbone
