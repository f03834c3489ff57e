#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "adapt/lab/lab.hpp"
#include "adapt/live/signals.hpp"
#include "app/site/site_check.hpp"
#include "app/site/site_run.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/probe_key.hpp"
#include "cli/up_lab.hpp"
#include "os/error.hpp"
#include "os/run_program.hpp"

namespace weft::cli {
namespace {

struct UpArgs {
  std::string file, name;
  bool checks = false, shows = false, stops = false, is_lab = false, has_no_fault = false;
};

namespace fs = std::filesystem;
using app::Site;
using app::SiteCheck;

constexpr std::chrono::milliseconds stop_patience{45'000};  // a lab may have to go, too

// A site and what else is known before anything runs. The current folder is that of its file.
struct Loaded {
  Site site;
  std::string identity, program;
};

Result<std::string> own_program() {
  std::error_code error;
  const std::string out = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return system_failure("/proc/self/exe", error.value());
  return out;
}

Result<Loaded> load(const UpArgs& args) {
  std::error_code error;
  const fs::path file = fs::absolute(args.is_lab ? args.file + "/site.yaml" : args.file, error);
  fs::current_path(file.parent_path(), error);
  if (error) return system_failure(file.parent_path().string(), error.value());
  Loaded out;
  WEFT_TRY(const std::string text, read_file(file.string(), std::uint64_t{1} << 26));
  WEFT_TRY(const Config config, parse_yaml(text, file.filename().string()));
  WEFT_TRY(out.site, app::read_site(config, file.string()));
  out.identity = fmt::format("{:016x}", hash_text(text));
  WEFT_TRY(out.program, own_program());
  return out;
}

// A file that was broken since its site began to run still says which one that is: by name and
// state, or the file's own name.
Result<Loaded> load_running(const UpArgs& args) {
  auto loaded = load(args);
  if (loaded) return loaded;
  const fs::path file = args.is_lab ? "site.yaml" : fs::path(args.file).filename();
  Loaded out;
  out.site.file = file.string();
  out.site.name = file.stem().string();
  const auto text = read_file(out.site.file, std::uint64_t{1} << 26);
  if (!text) return loaded;
  if (const auto config = parse_yaml(*text, out.site.file)) {
    const auto scalar = [&](std::string_view key, std::string& to) {
      const Config* value = config->find(key);
      if (value != nullptr && value->kind == Config::Kind::scalar) to = value->text;
    };
    scalar("name", out.site.name);
    out.site.state = out.site.name + ".state";
    scalar("state", out.site.state);
  } else {
    out.site.state = out.site.name + ".state";
  }
  if (!app::is_site_running(out.site.state)) return loaded;
  fmt::print(stderr, "weft: note: the site runs as it was read; its file is broken now: {}\n",
             loaded.error().text());
  return out;
}

std::string word(JsonNode node, std::string_view key) {
  return node.member(key).text().value_or("");
}

void print_processes(JsonNode of) {
  using Align = Table::Align;
  Table table({{"process", Align::left},
               {"state", Align::left},
               {"pid"},
               {"restarts"},
               {"lines"},
               {"last error", Align::left}});
  const JsonNode list = of.member("processes");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode one = list.item(i);
    const auto number = [&](const char* key) {
      return fmt::format("{}", one.member(key).whole().value_or(0));
    };
    table.add({word(one, "name"), word(one, "state"), number("pid"), number("restarts"),
               number("lines"),
               one.member("restarts").whole().value_or(0) > 0 ? word(one, "last_error") : ""});
  }
  fmt::print("{}", table.text());
}

void print_plan(JsonNode plan) {
  if (!plan) return;
  const std::string problem = word(plan, "problem");
  fmt::print("probes: {} flows since {}, plan {} ({}, took {:.1f} s){}{}{}\n",
             plan.member("flows").whole().value_or(0), word(plan, "at"),
             plan.member("made").whole().value_or(0), word(plan, "reason"),
             plan.member("took_s").number().value_or(0), problem.empty() ? "" : "; ", problem,
             plan.member("busy").flag().value_or(false) ? "; being made anew" : "");
}

// Exit status 1 where it does not run, or the service is not ready.
int show(const Common& common, const Loaded& loaded) {
  const Site& site = loaded.site;
  if (!app::is_site_running(site.state)) {
    if (common.json)
      fmt::print("{}\n", JsonObject().add("site", site.name).add("running", false).text());
    else
      fmt::print("{} does not run\n", site.name);
    return work_failed;
  }
  const auto text = app::site_status(site.state);
  if (!text) {
    fmt::print("{} is starting\n", site.name);
    return done;
  }
  const auto status = JsonLine::parse(trim(*text), {site.state + "/status.json", 0, 0});
  if (!status) return report(status.error());
  const JsonNode of = status->node();
  const bool is_ready = of.member("ready").flag().value_or(false);
  if (common.json) {
    fmt::print("{}\n", trim(*text));
    return is_ready ? done : work_failed;
  }
  fmt::print("{} runs since {} (pid {}); the service is {} at {}\n", word(of, "site"),
             word(of, "since"), of.member("pid").whole().value_or(0),
             is_ready ? "ready" : "not ready", word(of, "url"));
  if (!is_ready) fmt::print("{}\n", word(of, "trouble"));
  print_plan(of.member("plan"));
  const JsonNode sent = of.member("sent");
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const JsonNode feed = sent.item(i);
    fmt::print("{}: {} lines acknowledged, {} refused, {} bytes waiting{}{}\n", word(feed, "feed"),
               feed.member("acknowledged").whole().value_or(0),
               feed.member("refused").whole().value_or(0),
               feed.member("waiting_bytes").whole().value_or(0),
               word(feed, "trouble").empty() ? "" : "; ", word(feed, "trouble"));
  }
  print_processes(of);
  if (word(of, "identity") != loaded.identity)
    fmt::print("{} has changed since: weft up --down, then weft up, to use it\n", site.file);
  return is_ready ? done : work_failed;
}

int take_down(const Site& site, bool is_lab) {
  if (!app::is_site_running(site.state)) {
    fmt::print("{} does not run\n", site.name);
    // One that was killed has left its lab.
    if (!is_lab || site.lab.empty() || !adapt::lab::open_lab(site.lab)) return done;
    if (const Status down = stop_lab(site.lab); !down) return report(down.error());
    fmt::print("its lab {} is down\n", site.lab);
    return done;
  }
  // Written at its start, and every second.
  std::optional<std::int64_t> pid;
  if (const auto text = read_file(site.state + "/pid", 64))
    if (const auto number = parse_count({trim(*text), {}})) pid = *number;
  if (!pid || *pid <= 1 || ::kill(static_cast<pid_t>(*pid), SIGTERM) != 0)
    return report({Errc::io,
                   {site.state + "/pid", 0, 0},
                   "cannot signal the process that runs it",
                   "stop it where it was started",
                   {}});
  const auto end = std::chrono::steady_clock::now() + stop_patience;
  while (app::is_site_running(site.state)) {
    if (std::chrono::steady_clock::now() > end)
      return report({Errc::io,
                     {},
                     fmt::format("{} (pid {}) has not stopped", site.name, *pid),
                     "see its log",
                     {}});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fmt::print("{} is down\n", site.name);
  return done;
}

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) out.emplace_back(*at);
  return out;
}

// What `weft serve` itself says of its files.
SiteCheck check_service(const Loaded& loaded) {
  SiteCheck out{.what = "operate", .problem = {}, .advice = {}};
  std::vector<std::string> argv = app::serve_arguments(loaded.site);
  argv.insert(argv.begin(), loaded.program);
  argv.emplace_back("--check");
  const auto outcome = run_program({.argv = argv, .environment = environment()});
  if (!outcome)
    out.problem = outcome.error().text();
  else if (outcome->exit_code != 0)
    out.problem = trim(outcome->errors);
  return out;
}

std::vector<SiteCheck> check(const Loaded& loaded, const model::Fabric& fabric) {
  std::vector<SiteCheck> out = app::check_site(loaded.site, fabric);
  if (!loaded.site.lab.empty()) {
    SiteCheck lab{.what = "lab " + loaded.site.lab, .problem = {}, .advice = {}};
    if (const auto found = adapt::lab::open_lab(loaded.site.lab); !found) {
      lab.problem = found.error().what;
      lab.advice =
          fmt::format("weft lab up {} --name {} --syslog", loaded.site.fabric, loaded.site.lab);
    }
    const bool is_missing = !lab.problem.empty();
    out.push_back(std::move(lab));
    if (is_missing) return out;  // the service would say it again
  }
  // A file that is missing was reported.
  if (loaded.site.probes && ::access(loaded.site.probes->key.c_str(), R_OK) == 0)
    if (const auto key = read_probe_key(loaded.site.probes->key); !key)
      out.push_back({"probes.key " + loaded.site.probes->key, key.error().what, key.error().hint});
  out.push_back(check_service(loaded));
  return out;
}

std::size_t print_checks(const Common& common, const std::vector<SiteCheck>& checks, bool all) {
  using Align = Table::Align;
  Table table({{"needed", Align::left}, {"", Align::left}, {"what to do", Align::left}});
  JsonList list;
  std::size_t missing = 0;
  for (const SiteCheck& one : checks) {
    if (!one.problem.empty()) ++missing;
    list.add(
        JsonObject().add("needed", one.what).add("problem", one.problem).add("advice", one.advice));
    if (all || !one.problem.empty())
      table.add({one.what, one.problem.empty() ? "found" : one.problem, one.advice});
  }
  if (common.json && all)
    fmt::print("{}\n", JsonObject().add("missing", missing).add("checks", list).text());
  else if (table.row_count() > 0)
    fmt::print(all ? stdout : stderr, "{}", table.text());
  return missing;
}

Status run(const Common& common, Loaded& loaded, const model::Fabric& fabric, const UpArgs& args) {
  Site& site = loaded.site;
  WEFT_TRY(adapt::live::Signals signals, adapt::live::Signals::open());
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the log has gone: the site goes on
  WEFT_TRY_STATUS(write_file(site.state + "/pid", fmt::format("{}\n", ::getpid())));
  std::optional<LabTour> tour;
  if (args.is_lab) tour.emplace(site.lab, site.url, site.file, !args.has_no_fault);
  app::SiteRunOptions options{.program = loaded.program,
                              .identity = loaded.identity,
                              .log =
                                  [&](std::string_view name, std::string_view line) {
                                    if (!common.quiet)
                                      fmt::print(stderr, "{:<12} | {}\n", name, line);
                                  },
                              .turn = {}};
  if (tour) options.turn = [&](bool is_probing) { tour->turn(is_probing); };
  return app::run_site(site, fabric, options, signals);
}

// A lab's addresses and the names of its interfaces are those of the lab.
Status take_lab_names(Site& site) {
  if (site.lab.empty()) return {};
  WEFT_TRY(const adapt::lab::Lab lab, adapt::lab::open_lab(site.lab));
  if (site.inventory.empty()) {
    const std::string file = site.state + "/names.csv";
    WEFT_TRY_STATUS(write_file(file, adapt::lab::inventory_csv(lab.fabric, lab.plan)));
    for (app::SiteFeed& feed : site.feeds) {
      feed.arguments.emplace_back(feed.sends ? "--inventory" : "--addresses");
      feed.arguments.push_back(file);
    }
  }
  if (!site.probes || !site.probes->addresses.empty()) return {};
  std::string csv = "node,address\n";
  for (const adapt::lab::LabCable& cable : lab.plan.cables)
    for (const adapt::lab::CableEnd& end : cable.ends)
      csv += fmt::format("{},{}\n", lab.fabric.name(end.device), ipv4_text(end.address));
  site.probes->addresses = site.state + "/addresses.csv";
  return write_file(site.probes->addresses, csv);
}

int start(const Common& common, Loaded& loaded, const UpArgs& args) {
  const auto fabric = load_fabric(common, loaded.site.fabric);
  if (!fabric) return report(fabric.error());
  const std::vector<SiteCheck> checks = check(loaded, *fabric);
  const std::size_t missing = print_checks(common, checks, args.checks);
  if (missing > 0)
    return report({Errc::value,
                   {loaded.site.file, 0, 0},
                   fmt::format("{} of {} needs are not met", missing, checks.size()),
                   "nothing was started",
                   {}});
  if (args.checks) return done;
  if (const Status found = take_lab_names(loaded.site); !found) return report(found.error());
  const auto lock = app::lock_site(loaded.site.state);
  if (!lock) return report(lock.error());
  if (!lock->valid()) return show(common, loaded);
  const Status ran = run(common, loaded, *fabric, args);
  return ran ? int{done} : report(ran.error());
}

int up_lab(const Common& common, const UpArgs& args) {
  if (const Status written = write_lab_site(args.file, args.name.empty() ? "up0" : args.name);
      !written)
    return report(written.error());
  auto loaded = load(args);
  if (!loaded) return report(loaded.error());
  if (!args.name.empty() && args.name != loaded->site.lab)
    return report(
        {Errc::value,
         {loaded->site.file, 0, 0},
         fmt::format("this site has the lab {}, not {}", quote(loaded->site.lab), quote(args.name)),
         "leave out --name, or give another folder",
         {}});
  if (app::is_site_running(loaded->site.state)) return show(common, *loaded);
  const auto fabric = load_fabric(common, loaded->site.fabric);
  if (!fabric) return report(fabric.error());
  if (const Status up = start_lab(loaded->site.lab, *fabric); !up) {
    report(up.error());
    return work_failed;
  }
  const int status = start(common, *loaded, args);
  const Status down = stop_lab(loaded->site.lab);
  return down ? status : report(down.error());
}

int up_command(const Common& common, const UpArgs& given) {
  UpArgs args = given;
  if (args.file.empty()) {
    if (!args.is_lab)
      return report({Errc::value,
                     {},
                     "no site file is given",
                     "write weft up site.yaml; or weft up --lab for a first site here",
                     {}});
    args.file = "weft-lab";
  }
  if (args.is_lab && !args.checks && !args.shows && !args.stops) return up_lab(common, args);
  auto loaded = args.shows || args.stops ? load_running(args) : load(args);
  if (!loaded) return report(loaded.error());
  if (args.shows) return show(common, *loaded);
  if (args.stops) return take_down(loaded->site, args.is_lab);
  if (app::is_site_running(loaded->site.state)) return show(common, *loaded);
  return start(common, *loaded, args);
}

}  // namespace

void add_up(Commands& commands) {
  const auto [command, args] = commands.add<UpArgs>(
      "up", "Run a site: the service, its feeds and probes, by one file", up_command);
  command.add_option("file", args.file, "Site file; with --lab a folder (weft-lab)");
  CLI::Option* checks =
      command.add_flag("--check", args.checks, "Only report what is there and what is missing");
  CLI::Option* shows = command.add_flag("--status", args.shows, "Show what runs");
  CLI::Option* stops = command.add_flag("--down", args.stops, "Stop it");
  shows->excludes(checks)->excludes(stops);
  stops->excludes(checks);
  CLI::Option* lab = command.add_flag("--lab", args.is_lab,
                                      "Make a site of a lab on this machine, with a fault to find");
  command.add_flag("--no-fault", args.has_no_fault, "Make no fault")->needs(lab);
  command.add_option("--name", args.name, "Name of a new lab (up0)")->needs(lab);
}

}  // namespace weft::cli
