#include "cli/up_lab.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "adapt/lab/doctor.hpp"
#include "adapt/lab/extras.hpp"
#include "adapt/lab/fault.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/up.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "adapt/live/http_client.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "cli/probe_key.hpp"
#include "os/error.hpp"

namespace weft::cli {
namespace {

namespace lab = adapt::lab;
namespace live = adapt::live;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr const char* fabric =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}\n";

// Times are short, so that a first hour shows all of it; docs/serve.md has those of production.
constexpr const char* site_head = R"(# A site: see docs/commands/up.md.
fabric: zone.yaml
lab: {}
service: {{listen: "127.0.0.1:8630", snapshots: site.state/snapshots}}
probes: {{key: probe.key}}
operate:
  policy:
    defaults: {{soak: 3 s, verify: {{packets: 8000, lost: 0}}}}
    timing: {{recheck: 1 s, recheck_max: 2 s, grace: 2 s}}
  localise: {{keep: 4 s, every: 500 ms}}
)";

constexpr std::chrono::milliseconds patience{1'000};
constexpr auto settle = 3s;  // of healthy probing before the fault

Status write_new(const std::string& path, const std::string& text) {
  if (::access(path.c_str(), F_OK) == 0) return {};
  return write_file(path, text);
}

std::string snmp_targets(const lab::Lab& found) {
  std::string out = "device,address,community\n";
  for (const lab::LabNodeId node : found.plan.switches())
    out += fmt::format("{},{},{}\n", found.plan.nodes[node].name,
                       ipv4_text(found.plan.nodes[node].management), lab::snmp_community);
  return out;
}

std::string word(JsonNode node, std::string_view key) {
  return node.member(key).text().value_or("");
}

}  // namespace

Status write_lab_site(const std::string& folder, const std::string& name) {
  WEFT_TRY_STATUS(write_new(folder + "/zone.yaml", fabric));
  WEFT_TRY_STATUS(write_new(folder + "/probe.key",
                            fmt::format("{:016x}{:016x}\n", random_number(), random_number())));
  std::string site = fmt::format(site_head, name);
  if (!lab::snmpd_path().empty())
    site += "feeds:\n  - snmp: {targets: switches.csv, every: 5 s, node: mgmt}\n";
  return write_new(folder + "/site.yaml", site);
}

Status start_lab(const std::string& name, const model::Fabric& fabric_of_site) {
  if (!lab::is_privileged())
    return fail(Errc::unsupported, {"--lab", 0, 0}, "a lab with a service needs root",
                "run it with sudo; weft lab alone can do without");
  const lab::Diagnosis found = lab::diagnose();
  if (!found.can_frr()) {
    std::string lacks;
    for (const lab::Feature& feature : found.features)
      if (!feature.works && (feature.need == lab::Need::lab || feature.name == "frr"))
        lacks += fmt::format("{}{}: {}", lacks.empty() ? "" : "; ", feature.name, feature.detail);
    return fail(Errc::unsupported, {"--lab", 0, 0},
                "this machine cannot have a lab with FRRouting: " + lacks,
                "weft lab doctor says what to do");
  }
  std::error_code error;
  lab::UpRequest request{
      .options = {.name = name}, .program = {}, .progress = Progress::Show::never};
  request.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return system_failure("/proc/self/exe", error.value());
  request.options.syslog = lab::Extra::on;
  request.options.snmp = lab::snmpd_path().empty() ? lab::Extra::off : lab::Extra::on;
  WEFT_TRY(const lab::UpReport up, lab::bring_up(fabric_of_site, request));
  fmt::print("lab {}: {} switches with FRRouting, {} hosts, {} cables, up in {:.1f} s\n", name,
             up.switches, up.hosts, up.cables, up.seconds());
  std::fflush(stdout);
  WEFT_TRY(const lab::Lab made, lab::open_lab(name));
  if (request.options.snmp == lab::Extra::off) return {};
  return write_file("switches.csv", snmp_targets(made));
}

Status stop_lab(const std::string& name) {
  WEFT_TRY(const lab::DownReport down, lab::take_down(name));
  fmt::print("lab {}: {} processes stopped, {} namespaces removed\n", name, down.processes,
             down.namespaces);
  return {};
}

struct LabTour::Impl {
  std::string name, url, file;
  bool makes_fault;
  Clock::time_point look_at, probing_since, fault_at;
  bool is_probing = false, has_fault = false, has_case = false;
  std::string stage;
  std::optional<live::HttpClient> client;

  double since_fault() const {
    return std::chrono::duration<double>(Clock::now() - fault_at).count();
  }

  std::optional<JsonLine> get(const std::string& path) {
    if (!client) {
      auto opened = live::open_service({url, "service.listen"}, {}, patience);
      if (!opened) return std::nullopt;
      client.emplace(std::move(*opened));
    }
    const auto text = live::get_text(*client, path, "", patience);
    if (!text) {
      client.reset();
      return std::nullopt;
    }
    auto line = JsonLine::parse(*text, {path, 0, 0});
    if (!line) return std::nullopt;
    return std::move(*line);
  }

  void make_fault() {
    has_fault = true;
    const std::array<lab::FaultOption, 1> rate{{{"rate", "2%"}}};
    const auto spec = lab::parse_fault("link_lossy", up_lab_link, rate);
    const auto found = lab::open_lab(name);
    if (!spec || !found) return;
    if (const auto made = lab::inject_fault(*found, *spec); !made) {
      fmt::print(stderr, "weft: error: {}\n", made.error().text());
      return;
    }
    fault_at = Clock::now();
    fmt::print("fault: {} now loses 2 % of its packets; its carrier is up and no device says so\n",
               up_lab_link);
    std::fflush(stdout);
  }

  void look_for_case() {
    const auto list = get("/v1/cases");
    if (!list) return;
    const JsonNode items = list->node().member("items");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const JsonNode item = items.item(i), cause = item.member("cause");
      if (word(cause, "entity") != up_lab_cable) continue;
      has_case = true;
      const std::string id = word(item, "id");
      fmt::print("case {}: {} at {}, {:.1f} s after the fault\n", id, word(cause, "kind"),
                 word(cause, "entity"), since_fault());
      fmt::print(
          "next:\n"
          "  {}/#/case/{}    # in a browser\n"
          "  weft case {} --from {}    # the same in a terminal\n"
          "  weft lab heal all --name {}    # mend the cable: it is tested and taken back\n"
          "  weft lab fault --help    # other faults\n"
          "  weft up --lab --status, weft up --lab --down\n",
          url, id, id, url, name);
      std::fflush(stdout);
      return;
    }
  }

  void look_at_repair() {
    const auto list = get("/v1/repairs");
    if (!list) return;
    const JsonNode items = list->node().member("items");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const JsonNode item = items.item(i);
      if (word(item, "part") != up_lab_cable) continue;
      if (std::exchange(stage, word(item, "stage")) != stage) {
        fmt::print("repair of {}: {}, {:.1f} s after the fault\n", up_lab_cable, stage,
                   since_fault());
        std::fflush(stdout);
      }
      return;
    }
  }
};

LabTour::LabTour(std::string name, std::string url, std::string file, bool makes_fault)
    : impl_(std::make_unique<Impl>()) {
  impl_->name = std::move(name);
  impl_->url = std::move(url);
  impl_->file = std::move(file);
  impl_->makes_fault = makes_fault;
}

LabTour::~LabTour() = default;

void LabTour::turn(bool is_probing) {
  Impl& t = *impl_;
  const auto now = Clock::now();
  if (now < t.look_at || !is_probing) return;
  t.look_at = now + 500ms;
  if (!t.is_probing) {
    t.is_probing = true;
    t.probing_since = now;
    fmt::print("site {}: service ready at {}, all hosts probe\n", t.file, t.url);
    std::fflush(stdout);
  }
  if (!t.makes_fault || now - t.probing_since < settle) return;
  if (!t.has_fault) return t.make_fault();
  if (!t.has_case) t.look_for_case();
  t.look_at_repair();
}

}  // namespace weft::cli
