#include "app/site/site_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include "adapt/live/command_template.hpp"
#include "adapt/live/http_client.hpp"
#include "base/text.hpp"
#include "observe/probe/targets.hpp"

namespace weft::app {
namespace {

namespace live = adapt::live;

constexpr std::size_t feeds_max = 1'000;

// A key of a feed and the option it becomes.
struct FeedKey {
  enum class Type : std::uint8_t { text, time, file, udp_port, texts, files };
  std::string_view key, option;
  Type type = Type::text;
  bool is_required = false;
};
using enum FeedKey::Type;

constexpr std::array snmp_keys{
    FeedKey{"targets", "--targets", file, true}, FeedKey{"rules", "--rules", file},
    FeedKey{"every", "--every", time},           FeedKey{"timeout", "--timeout", time},
    FeedKey{"traps", "--traps", udp_port},       FeedKey{"senders", "--senders", file}};
constexpr std::array prometheus_keys{FeedKey{"targets", "--targets", file, true},
                                     FeedKey{"rules", "--rules", file},
                                     FeedKey{"mapping", "--mapping", file},
                                     FeedKey{"ca", "--ca", file},
                                     FeedKey{"cert", "--cert", file},
                                     FeedKey{"key", "--key", file},
                                     FeedKey{"every", "--every", time},
                                     FeedKey{"timeout", "--timeout", time}};
constexpr std::array traps_keys{FeedKey{"listen", "--listen", udp_port, true},
                                FeedKey{"senders", "--senders", file, true}};
constexpr std::array gnmi_keys{
    FeedKey{"targets", "--targets", file, true}, FeedKey{"rules", "--rules", file},
    FeedKey{"encoding", "--encoding"},           FeedKey{"every", "--every", time},
    FeedKey{"silence", "--silence", time},       FeedKey{"paths", "--path", texts},
    FeedKey{"on_change", "--on-change", texts}};
constexpr std::array agent_keys{FeedKey{"device", "--device", text, true},
                                FeedKey{"logs", "--log", files},
                                FeedKey{"rules", "--rules", file},
                                FeedKey{"interval", "--interval", time},
                                FeedKey{"ports_per_card", "--ports-per-card"},
                                FeedKey{"traces", "--traces"},
                                FeedKey{"job", "--job"},
                                FeedKey{"trace_every", "--trace-every", time}};

struct FeedKind {
  std::string_view name;
  std::array<std::string_view, 2> command;  // "" where it is one word
  std::span<const FeedKey> keys;
  std::string_view inventory;  // the option that takes the site's
  bool sends;
};
const std::array kinds{
    FeedKind{"snmp", {"poll", "snmp"}, snmp_keys, "--addresses", false},
    FeedKind{"prometheus", {"poll", "prometheus"}, prometheus_keys, "--addresses", false},
    FeedKind{"traps", {"traps", ""}, traps_keys, "--addresses", false},
    FeedKind{"gnmi", {"gnmi", ""}, gnmi_keys, "--addresses", false},
    FeedKind{"agent", {"agent", ""}, agent_keys, "--inventory", true}};

// Options are passed on through remote shells, which would split "1 s".
std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

class SiteReader {
 public:
  SiteReader(const Config& config, const std::string& file) : config_(config) { out_.file = file; }

  Result<Site> read() {
    Reader reader(config_, "site", errors_);
    const std::filesystem::path file(out_.file);
    out_.name = reader.text("name", file.stem().string());
    out_.fabric = need(reader, "fabric", std::nullopt);
    out_.state = reader.text("state", out_.name + ".state");
    out_.lab = reader.text("lab", "");
    out_.inventory = need(reader, "inventory", "");
    out_.catalogue = need(reader, "catalogue", "");
    read_service(reader.child("service"));
    if (const Config* operate = reader.child("operate")) {
      out_.is_config_here = operate->kind != Config::Kind::scalar;
      out_.config = out_.is_config_here ? out_.file : operate->text;
      if (!out_.is_config_here) out_.files.push_back({"operate", out_.config});
    }
    read_access(reader.child("access"));
    read_feeds(reader.child("feeds"));
    if (const Config* probes = reader.child("probes")) read_probes(*probes);
    reader.finish();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  std::string need(Reader& reader, const std::string& key,
                   const std::optional<std::string>& fallback, const std::string& section = "") {
    std::string path = reader.text(key, fallback);
    if (!path.empty()) out_.files.push_back({section + key, path});
    return path;
  }

  void read_service(const Config* section) {
    const Config none = Config::map();
    Reader reader(section != nullptr ? *section : none, "service", errors_);
    out_.store = reader.text("store", out_.state + "/weft.db");
    out_.listen = reader.text("listen", "127.0.0.1:8630");
    out_.snapshots = reader.text("snapshots", "");
    out_.traces = reader.text("traces", "");
    out_.tokens = need(reader, "tokens", "", "service.");
    out_.certificate = need(reader, "cert", "", "service.");
    out_.key = need(reader, "key", "", "service.");
    out_.client_ca = need(reader, "client_ca", "", "service.");
    if (!out_.listen.starts_with("unix:"))
      out_.ports.push_back({SitePort::Protocol::tcp, out_.listen, "service.listen"});
    for (const Token& at : reader.texts("syslog")) {
      out_.syslog.emplace_back(at.text);
      const std::size_t scheme = at.text.find("://");
      if (scheme == std::string_view::npos) {
        reader.error(Errc::parse, at.where,
                     fmt::format("{} is not a syslog address", quote(at.text)),
                     "write e.g. udp://0.0.0.0:514");
        continue;
      }
      out_.ports.push_back(
          {at.text.starts_with("udp") ? SitePort::Protocol::udp : SitePort::Protocol::tcp,
           std::string(at.text.substr(scheme + 3)), "service.syslog"});
    }
    reader.finish();
  }

  void read_access(const Config* section) {
    const Config none = Config::map();
    Reader reader(section != nullptr ? *section : none, "access", errors_);
    const std::string scheme = out_.certificate.empty() ? "http://" : "https://";
    const bool is_local = out_.listen.starts_with("unix:");
    out_.url = reader.text("url", is_local ? out_.listen : scheme + out_.listen);
    out_.token = need(reader, "token", "", "access.");
    out_.ca = need(reader, "ca", "", "access.");
    out_.client_certificate = need(reader, "cert", "", "access.");
    out_.client_key = need(reader, "key", "", "access.");
    if (!out_.tokens.empty() && out_.token.empty() && out_.client_certificate.empty())
      reader.error(Errc::value, reader.where("token"),
                   "service.tokens is set, but the site's own feeds have no token",
                   "add access: {token: FILE} with a token of the roles read and ingest");
    reader.finish();
  }

  void read_feeds(const Config* section) {
    if (section == nullptr) return;
    if (section->kind != Config::Kind::list || section->items.size() > feeds_max) {
      errors_.push_back({Errc::value,
                         section->where,
                         fmt::format("feeds must be a list of at most {}", feeds_max),
                         "begin each entry with \"- \"",
                         {}});
      return;
    }
    for (const Config& item : section->items) {
      if (item.kind == Config::Kind::map && item.fields.size() == 1) {
        read_feed(item.fields.front());
        continue;
      }
      errors_.push_back({Errc::value,
                         item.where,
                         "a feed is one kind with its keys",
                         "write e.g. \"- snmp: {targets: devices.csv}\"",
                         {}});
    }
  }

  void read_feed(const Config::Field& field) {
    const auto kind = std::ranges::find(kinds, field.key, &FeedKind::name);
    if (kind == kinds.end()) {
      std::vector<std::string> known;
      for (const FeedKind& one : kinds) known.emplace_back(one.name);
      errors_.push_back(
          {Errc::unknown,
           field.where,
           fmt::format("unknown feed {}{}", quote(field.key), did_you_mean(field.key, known)),
           fmt::format("choose one of: {}; syslog is service.syslog, alerts are "
                       "posted to /v1/alertmanager",
                       fmt::join(known, ", ")),
           {}});
      return;
    }
    Reader reader(field.value, field.key, errors_);
    SiteFeed feed{.name = unique_name(field.key), .arguments = {}, .sends = kind->sends};
    for (const std::string_view word : kind->command)
      if (!word.empty()) feed.arguments.emplace_back(word);
    add(feed, "--fabric", out_.fabric);
    if (!out_.inventory.empty()) add(feed, kind->inventory, out_.inventory);
    for (const FeedKey& key : kind->keys) read_key(reader, key, feed);
    feed.node = reader.text("node", "");
    if (!feed.node.empty() && out_.lab.empty())
      reader.error(Errc::value, reader.where("node"), "node is a namespace of a lab",
                   "remove it, or add lab: NAME");
    reader.finish();
    if (feed.sends) add_access(feed);
    out_.feeds.push_back(std::move(feed));
  }

  void read_key(Reader& reader, const FeedKey& key, SiteFeed& feed) {
    if (key.type == texts || key.type == files) {
      for (const Token& value : reader.texts(key.key)) {
        add(feed, key.option, value.text);
        if (key.type == files)
          out_.files.push_back({fmt::format("{}.{}", feed.name, key.key), std::string(value.text)});
      }
      return;
    }
    const std::string value =
        reader.text(key.key, key.is_required ? std::nullopt : std::optional<std::string>(""));
    if (value.empty()) return;
    if (key.type == time) {
      const auto length = parse_duration({value, reader.where(key.key)});
      if (!length || *length <= Duration{})
        reader.error(Errc::value, reader.where(key.key),
                     fmt::format("{} is not a time above 0: {}", key.key, quote(value)),
                     "write e.g. 10 s");
    }
    add(feed, key.option, value);
    const std::string what = fmt::format("{}.{}", feed.name, key.key);
    if (key.type == file) out_.files.push_back({what, value});
    if (key.type == udp_port && !reader.has("node"))
      out_.ports.push_back({SitePort::Protocol::udp, value, what});
  }

  static void add(SiteFeed& feed, std::string_view option, std::string_view value) {
    feed.arguments.emplace_back(option);
    feed.arguments.emplace_back(value);
  }

  void add_access(SiteFeed& feed) const {
    add(feed, "--to", out_.url);
    add(feed, "--spool", fmt::format("{}/spool-{}", out_.state, without_blanks(feed.name)));
    for (const auto& [option, value] :
         {std::pair{"--token", &out_.token}, std::pair{"--ca", &out_.ca},
          std::pair{"--cert", &out_.client_certificate}, std::pair{"--key", &out_.client_key}})
      if (!value->empty()) add(feed, option, *value);
  }

  std::string unique_name(const std::string& kind) const {
    const auto is_of = [&](const SiteFeed& feed) {
      return feed.name == kind || feed.name.starts_with(kind + " ");
    };
    const auto count = std::ranges::count_if(out_.feeds, is_of);
    return count == 0 ? kind : fmt::format("{} {}", kind, count + 1);
  }

  void read_probes(const Config& section) {
    constexpr std::array<std::string_view, 2> names{"device", "host"};
    constexpr std::array<std::string_view, 4> copy_names{"device", "host", "file", "folder"};
    const std::array<std::string, 2> paths{"learned", "hash"};
    Reader reader(section, "probes", errors_);
    SiteProbes& p = out_.probes.emplace();
    p.key = need(reader, "key", std::nullopt, "probes.");
    p.addresses = need(reader, "addresses", "", "probes.");
    for (const Token& host : reader.texts("hosts")) p.hosts.emplace_back(host.text);
    p.at = live::read_argv(reader, "at", names, false);
    p.copy = live::read_argv(reader, "copy", copy_names, false);
    p.program = reader.text("program", p.at.empty() ? "" : "/usr/bin/weft");
    p.folder = reader.text("folder", "/var/lib/weft-probe");
    p.paths = static_cast<SiteProbes::Paths>(reader.choice("paths", paths, 0));
    read_ports(reader, p);
    p.window = without_blanks(reader.text("window", "1 s"));
    p.timeout = without_blanks(reader.text("timeout", "100 ms"));
    p.late = without_blanks(reader.text("late", "400 ms"));
    p.crossings = reader.count("crossings", 1'000, 1, 1'000'000);
    p.flows = reader.count("flows", 0, 0, 64);
    if (reader.has("routes")) p.routes = reader.count("routes", 4, 0, 64);
    p.targets = reader.count("targets", 8, 1, 1'000);
    p.ttl_max = reader.count("ttl_max", 6, 1, 32);
    p.sweep_rate = reader.number("sweep_rate", 5'000, 1, 1e6);
    p.renew_ns = reader.duration("renew", 600_s).ps / ps_per_ns;
    if (p.renew_ns < 10 * ns_per_s)
      reader.error(Errc::value, reader.where("renew"), "renew must be at least 10 s");
    p.responders = reader.flag("responders", true);
    p.one_way = reader.flag("one_way", false);
    if (!p.at.empty() && !out_.lab.empty())
      reader.error(Errc::value, reader.where("at"), "programs of a lab run in its namespaces",
                   "remove at, or lab");
    if (!p.copy.empty() && p.at.empty())
      reader.error(Errc::value, reader.where("copy"), "copy needs at: how programs are run there");
    reader.finish();
  }

  static void read_ports(Reader& reader, SiteProbes& out) {
    const std::string text = reader.text("ports", "49152-49183");
    const auto ports = observe::probe::parse_ports({text, reader.where("ports")});
    if (!ports) return reader.error(ports.error());
    out.port_first = ports->first;
    out.port_last = ports->last;
    if (ports->count() < 2)
      reader.error(Errc::value, reader.where("ports"), "probes need at least two source ports",
                   "plans use the halves of the range in turn");
  }

  const Config& config_;
  Site out_;
  Errors errors_;
};

}  // namespace

Result<Site> read_site(const Config& config, const std::string& file) {
  return SiteReader(config, file).read();
}

std::vector<std::string> serve_arguments(const Site& site) {
  std::vector<std::string> out{"serve"};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    out.emplace_back(option);
    out.push_back(value);
  };
  add("--fabric", site.fabric);
  add("--store", site.store);
  add("--listen", site.listen);
  add("--config", site.config);
  if (site.is_config_here) add("--section", "operate");
  for (const std::string& address : site.syslog) add("--syslog", address);
  add("--inventory", site.inventory);
  add("--catalogue", site.catalogue);
  add("--tokens", site.tokens);
  add("--cert", site.certificate);
  add("--key", site.key);
  add("--client-ca", site.client_ca);
  add("--lab", site.lab);
  add("--snapshots", site.snapshots);
  add("--traces", site.traces);
  return out;
}

}  // namespace weft::app
