// How much of what devices print is understood, on lines of a corpus that the rules were not
// written from: by dialect, in two halves. Fails below the bar, and on any fault that is none.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace {

namespace model = weft::model;
namespace telemetry = weft::observe::telemetry;
using model::EventKind;

constexpr double held_out_bar = 0.9;  // understood, of all events of that half
constexpr std::uint32_t card = 1;

// Heads before {}, the message, of a device named rtsw-0 or host-0; the names of its port towards
// ctsw:0, of which the fabric has the first. "#" before a head: with sequence numbers.
struct DialectForms {
  std::vector<std::string_view> heads;
  std::vector<std::string_view> ports;
};

const std::map<std::string, DialectForms, std::less<>>& forms() {
  static const std::map<std::string, DialectForms, std::less<>> all{
      {"eos",
       {{"<189>Nov 21 04:05:06 rtsw-0 {}", "<189>2026-11-21T04:05:06.123456+00:00 rtsw-0 {}",
         "<189>Nov 21 2026 04:05:06 rtsw-0 {}", "#<189>Nov 21 04:05:06 rtsw-0 {}"},
        {"Ethernet9/1", "Et9/1"}}},
      {"nxos",
       {{"<189>rtsw-0: 2026 Nov 21 04:05:06.123 UTC: {}", "2026 Nov 21 04:05:06 rtsw-0 {}",
         "<189>Nov 21 04:05:06 rtsw-0 : 2026 Nov 21 04:05:06.123 UTC: {}",
         "<189>471: rtsw-0: 2026 Nov 21 04:05:06 UTC: {}",
         "<189>rtsw-0: 2026 Nov 21 04:05:06 UTC: %$ VDC-1 %$ {}"},
        {"Ethernet1/9", "Eth1/9"}}},
      {"iosxr",
       {{"<187>471: rtsw-0 RP/0/RSP0/CPU0:Nov 21 04:05:06.123 UTC: {}",
         "<187>Nov 21 04:05:06 rtsw-0 471: LC/0/2/CPU0:Nov 21 04:05:06.123 : {}",
         "<187>471: rtsw-0 RP/0/RP0/CPU0:2026 Nov 21 04:05:06.123 UTC: {}"},
        {"HundredGigE0/0/0/9", "Hu0/0/0/9"}}},
      {"junos",
       {{"<28>Nov 21 04:05:06  rtsw-0 {}", "<28>Nov 21 04:05:06.123 2026 rtsw-0 {}",
         "<28>2026-11-21T04:05:06+00:00 rtsw-0 {}"},
        {"et-0/0/9", "et-0/0/9.0"}}},
      {"sonic",
       {{"2026 Nov 21 04:05:06.123456 rtsw-0 {}", "<29>Nov 21 04:05:06.123456 rtsw-0 {}",
         "<29>2026-11-21T04:05:06.123456+00:00 rtsw-0 {}"},
        {"Ethernet36"}}},
      {"frr",
       {{"<28>Nov 21 04:05:06 rtsw-0 {}", "2026-11-21T04:05:06.123456Z rtsw-0 {}"}, {"swp9"}}},
      {"cumulus",
       {{"<28>Nov 21 04:05:06 rtsw-0 {}", "2026-11-21T04:05:06.123456+00:00 rtsw-0 {}"}, {"swp9"}}},
      {"host",
       {{"<4>Nov 21 04:05:06 host-0 {}", "2026-11-21T04:05:06.123456+00:00 host-0 {}"}, {""}}},
  };
  return all;
}

// Stable over machines and years, unlike std::hash: FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t out = 14'695'981'039'346'656'037u;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 1'099'511'628'211u;
  return out ^ out >> 32;
}

struct Row {
  std::string dialect, kind, about, message;
};

std::vector<Row> read_corpus(const std::string& path) {
  std::ifstream in(path);
  std::vector<Row> out;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::array<std::string, 5> cells;
    std::size_t at = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t end = i == 4 ? line.size() : line.find('\t', at);
      WEFT_CHECK(end != std::string::npos);
      cells[i] = line.substr(at, end - at);
      at = end + 1;
    }
    WEFT_CHECK(model::event_kind(cells[2]).has_value());
    out.push_back({cells[0], cells[2], cells[3], cells[4]});
  }
  return out;
}

// rtsw:0 to ctsw:0 by a port of that name, and to four NICs of host:0.
struct Bed {
  model::Fabric fabric;
  telemetry::Inventory inventory;
  telemetry::Catalogue catalogue = telemetry::Catalogue::built_in();
  telemetry::SyslogReader reader;
  model::LinkId uplink;

  explicit Bed(std::string_view port)
      : fabric(build(port)), inventory(fabric), reader(inventory, catalogue, {}) {
    uplink = inventory.port(inventory.device("rtsw:0"), fabric.interface_name(forward_link()));
    const auto added = inventory.add_csv(
        "address,device,interface\n10.9.0.1,ctsw:0,far\n2001:db8::9,ctsw:0,far\n", "bed");
    WEFT_CHECK(added.has_value());
  }
  model::LinkId forward_link() const { return fabric.out(inventory.device("rtsw:0"))[0]; }

  static model::Fabric build(std::string_view port) {
    model::FabricBuilder builder;
    const model::ScopeId scope = builder.add_scope(model::ScopeKind::zone, {});
    const auto leaf = builder.add_node({model::NodeKind::fabric_switch, "rtsw", scope});
    const auto spine = builder.add_node({model::NodeKind::fabric_switch, "ctsw", scope});
    const auto host = builder.add_node({model::NodeKind::host, "host", scope});
    using weft::operator""_Gbps, weft::operator""_ps;
    builder.add_circuit(leaf, spine, {400_Gbps, 0_ps, port, "far"});
    for (int i = 0; i < 4; ++i) {
      const auto nic = builder.add_node({model::NodeKind::nic, "nic", scope, host});
      builder.add_circuit(leaf, nic, {400_Gbps, 0_ps});
    }
    return builder.freeze();
  }

  model::Entity entity_of(const Row& row) const {
    const model::NodeId leaf = inventory.device("rtsw:0"), host = inventory.device("host:0");
    if (row.about == "port" || row.about == "peer") return model::port_of(uplink);
    if (row.about == "card") return model::card_of(leaf, card);
    if (row.about == "nic") return model::entity(inventory.nic(host, "eth2"));
    return model::entity(row.dialect == "host" ? host : leaf);
  }
};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string line_of(const Row& row, const DialectForms& form, std::uint64_t hash) {
  std::string out{form.heads[(hash >> 8) % form.heads.size()]};
  const bool is_numbered = out.starts_with('#');
  out = replaced(out.substr(is_numbered ? 1 : 0), "{}", row.message);
  if (is_numbered) out = replaced(out, ": %", ": 471: %");
  out = replaced(out, "{port}", form.ports[(hash >> 16) % form.ports.size()]);
  out = replaced(out, "{peer}", (hash >> 24) % 4 == 0 ? "2001:db8::9" : "10.9.0.1");
  return replaced(replaced(out, "{nic}", "eth2"), "{card}", std::to_string(card));
}

// Ends something, or says nothing about health.
bool is_fault(EventKind kind) {
  using enum EventKind;
  switch (kind) {
    case info:
    case link_up:
    case bgp_up:
    case bfd_up:
    case nic_up:
    case card_ok:
    case process_start:
    case config_commit:
      return false;
    default:
      return true;
  }
}

struct Tally {
  int events = 0, understood = 0, benign = 0, false_faults = 0;
};

}  // namespace

// Arguments: the corpus; "-v" to print what is not understood of the seen half, and every fault
// that is none.
int main(int argc, char** argv) {
  WEFT_CHECK(argc >= 2);
  const std::vector<Row> rows = read_corpus(argv[1]);
  const bool verbose = argc > 2;
  std::map<std::string, std::array<Tally, 2>> tallies;
  std::map<std::string, Bed> beds;
  for (const Row& row : rows) {
    const DialectForms& form = forms().at(row.dialect);
    Bed& bed = beds.try_emplace(row.dialect, form.ports.front()).first->second;
    const std::uint64_t hash = hash_of(row.message);
    const bool held_out = hash % 2 == 0;
    const std::string line = line_of(row, form, hash);
    bed.reader.take(line, *weft::parse_timestamp({"2026-11-21T04:05:07Z", {}}), "");
    const model::Record& got = bed.reader.records().rows.back();
    const EventKind wanted = *model::event_kind(row.kind);
    const bool right = got.kind == wanted && got.entity == bed.entity_of(row);
    const bool invented = is_fault(got.kind) && !is_fault(wanted);
    for (const char* of : {row.dialect.c_str(), "all"}) {
      Tally& tally = tallies[of][held_out ? 1 : 0];
      (wanted == EventKind::info ? tally.benign : tally.events) += 1;
      tally.understood += wanted != EventKind::info && right;
      tally.false_faults += invented;
    }
    if (verbose && !held_out && ((wanted != EventKind::info && !right) || invented))
      fmt::print("{}{} for {} {}: {}\n", invented ? "FALSE " : "", to_text(got.kind), row.kind,
                 row.about, line);
  }
  fmt::print("{} templates\n{:8} {:>20} {:>20} {:>14}\n", rows.size(), "dialect", "seen half",
             "held-out half", "false faults");
  for (const auto& [dialect, halves] : tallies) {
    fmt::print("{:8}", dialect);
    for (const Tally& t : halves)
      fmt::print(" {:>9} {:3}/{:3} {:3.0f}%", "", t.understood, t.events,
                 t.events == 0 ? 100.0 : 100.0 * t.understood / t.events);
    fmt::print(" {:6} of {:4}\n", halves[0].false_faults + halves[1].false_faults,
               halves[0].benign + halves[1].benign);
  }
  const auto& [seen, unseen] = tallies["all"];
  const bool good = rows.size() >= 500 && seen.false_faults + unseen.false_faults == 0 &&
                    unseen.understood >= held_out_bar * unseen.events;
  if (!good)
    fmt::print("below the bar: {:.0f} % of the held-out half, no false fault\n",
               100 * held_out_bar);
  return good ? 0 : 1;
}
