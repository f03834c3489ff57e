#include "adapt/lab/fault_spec.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "model/fabric/fault_catalogue.hpp"

namespace weft::adapt::lab {
namespace {

constexpr double share_min = 1e-6;
constexpr Duration delay_max{10'000'000'000'000};      // 10 s
constexpr Duration period_min{10'000'000'000};         // 10 ms
constexpr Duration period_max{3'600'000'000'000'000};  // 1 h
constexpr std::uint32_t flap_count_max = 10'000;
constexpr std::uint32_t bucket_count_max = 1u << 16;
constexpr Rate rate_min{8'000};
constexpr Rate rate_max{100'000'000'000};
constexpr Bytes queue_default{256 << 10};
constexpr Bytes queue_min{2'048};
constexpr Bytes queue_max{64 << 20};
constexpr std::uint32_t interval_max = 3'600'000;

enum Places : std::uint8_t { on_direction = 1, on_cable = 2, on_switch = 4, on_host = 8 };
constexpr std::uint8_t on_link = on_direction | on_cable;

// One row per kind, in the order of the enumeration. Options are separated by blanks; those before
// the bar must be given. Names and what a kind does: the catalogue.
struct KindRow {
  model::FaultKind fault;
  std::uint8_t places;
  std::string_view options;
  std::string_view name() const { return to_text(fault); }
};
constexpr std::array<KindRow, fault_kind_count> kinds{{
    {model::FaultKind::link_lossy, on_link, "| rate bucket class seed"},
    {model::FaultKind::switch_lossy, on_switch, "| rate bucket class seed"},
    {model::FaultKind::dead_link, on_cable, "|"},
    {model::FaultKind::ecn_mark, on_link | on_switch, "| rate bucket class seed"},
    {model::FaultKind::delay, on_link, "delay | jitter seed"},
    {model::FaultKind::jitter, on_link, "jitter | delay seed"},
    {model::FaultKind::corrupt, on_link, "rate | seed"},
    {model::FaultKind::reorder, on_link, "rate | delay seed"},
    {model::FaultKind::duplicate, on_link, "rate | seed"},
    {model::FaultKind::link_degraded, on_link, "rate | queue ecn seed"},
    {model::FaultKind::link_down, on_cable, "|"},
    {model::FaultKind::port_flap, on_cable, "period count |"},
    {model::FaultKind::blackhole, on_switch, "to |"},
    {model::FaultKind::daemon_kill, on_switch, "| daemon"},
    {model::FaultKind::daemon_stop, on_switch, "| daemon"},
    {model::FaultKind::daemon_hang, on_switch, "| daemon"},
    {model::FaultKind::switch_down, on_switch, "|"},
    {model::FaultKind::icmp_ratelimit, on_switch | on_host, "| interval"},
}};

constexpr std::array<FaultOptionHelp, 13> options_known{{
    {"rate",
     "share of frames (\"1%\", \"0.001\"); of kind link_degraded: bits per second (\"1 Gbps\")"},
    {"bucket", "only TCP and UDP flows whose 5-tuple hash is in K of N buckets: \"3/64\""},
    {"class", "only packets of this DSCP, 0 to 63"},
    {"delay", "time added: \"5 ms\"; of kind reorder: how long a frame is held back (1 ms)"},
    {"jitter", "random time added, uniform from 0: \"1 ms\""},
    {"queue", "limit of a slowed link's queue (\"256 KiB\")"},
    {"ecn", "queue above which a slowed link marks ECT packets CE: \"50 KiB\""},
    {"to", "destination of a black hole: an address, a prefix, or a host or NIC"},
    {"daemon", "zebra, bgpd (default), bfdd or snmpd"},
    {"period", "period of a flap, one down and one up: \"2 s\""},
    {"count", "number of flaps"},
    {"interval", "milliseconds between two ICMP errors to one source (1000)"},
    {"seed", "seed of the random choices (1)"},
}};

const KindRow& row_of(FaultKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

bool strikes_share(FaultKind kind) {
  using enum FaultKind;
  return kind == link_lossy || kind == switch_lossy || kind == ecn_mark || kind == corrupt ||
         kind == reorder || kind == duplicate;
}

bool lists(std::string_view options, std::string_view name) {
  const auto words = split(options, ' ');
  return std::ranges::find(words, name) != words.end();
}

std::string places_text(std::uint8_t places) {
  constexpr std::array<std::pair<std::uint8_t, std::string_view>, 4> names{
      {{on_direction, "a direction \"a->b\""},
       {on_cable, "a cable \"a--b\""},
       {on_switch, "a switch"},
       {on_host, "a host"}}};
  std::string text;
  for (const auto& [place, name] : names)
    if ((places & place) != 0) text += (text.empty() ? "" : " or ") + std::string(name);
  return text;
}

// "1%", "0.5 %", "0.01".
Result<double> parse_share(const Token& token) {
  const double share = parse_fraction(token).value_or(-1);
  if (!(share >= share_min * (1 - 1e-9) && share <= 1))
    return fail(Errc::value, token.where,
                fmt::format("{} is not a share of frames from 0.0001% to 100%", quote(token.text)),
                "write e.g. \"1%\" or \"0.01\"");
  return share;
}

Result<TupleBucket> parse_bucket(const Token& token) {
  const auto parts = split(token.text, '/');
  if (parts.size() == 2) {
    const auto hit = parse_count({parts[0], token.where});
    const auto of = parse_count({parts[1], token.where});
    if (hit && of && *hit >= 1 && *hit <= *of && *of <= bucket_count_max)
      return TupleBucket{static_cast<std::uint32_t>(*hit), static_cast<std::uint32_t>(*of)};
  }
  return fail(
      Errc::value, token.where, fmt::format("{} is not of the form K/N", quote(token.text)),
      fmt::format("write \"3/64\": flows in 3 of 64 buckets, of at most {}", bucket_count_max));
}

template <class T>
Result<T> within(Result<T> value, const Token& token, T least, T most) {
  if (value && (*value < least || *value > most))
    return fail(
        Errc::value, token.where,
        fmt::format("{} is not within {} to {}", quote(token.text), to_text(least), to_text(most)));
  return value;
}

Result<std::uint32_t> parse_small(const Token& token, std::uint32_t least, std::uint32_t most) {
  const auto count = parse_count(token);
  if (!count) return std::unexpected(count.error());
  if (*count < least || *count > most)
    return fail(Errc::value, token.where,
                fmt::format("{} is not within {} to {}", quote(token.text), least, most));
  return static_cast<std::uint32_t>(*count);
}

Result<std::string> parse_daemon(const Token& token) {
  const std::vector<std::string> daemons{"zebra", "bgpd", "bfdd", "snmpd"};
  const std::string name(trim(token.text));
  if (std::ranges::find(daemons, name) == daemons.end())
    return fail(Errc::unknown, token.where,
                fmt::format("unknown daemon {}{}", quote(name), did_you_mean(name, daemons)),
                "one of zebra, bgpd, bfdd, snmpd");
  return name;
}

template <class T, class U>
Status put(T& field, Result<U> value) {
  if (!value) return std::unexpected(std::move(value).error());
  field = *std::move(value);
  return {};
}

Status read_option(FaultSpec& spec, std::string_view name, const Token& value) {
  if (name == "rate") {
    if (spec.kind == FaultKind::link_degraded)
      return put(spec.rate, within(parse_rate(value), value, rate_min, rate_max));
    return put(spec.share, parse_share(value));
  }
  if (name == "bucket") return put(spec.bucket, parse_bucket(value));
  if (name == "class") return put(spec.dscp, parse_small(value, 0, 63));
  if (name == "delay")
    return put(spec.delay, within(parse_duration(value), value, Duration{1'000'000}, delay_max));
  if (name == "jitter")
    return put(spec.jitter, within(parse_duration(value), value, Duration{1'000'000}, delay_max));
  if (name == "queue")
    return put(spec.queue, within(parse_bytes(value), value, queue_min, queue_max));
  if (name == "ecn")
    return put(spec.ecn_threshold, within(parse_bytes(value), value, 1_B, queue_max));
  if (name == "daemon") return put(spec.daemon, parse_daemon(value));
  if (name == "period")
    return put(spec.period, within(parse_duration(value), value, period_min, period_max));
  if (name == "count") return put(spec.count, parse_small(value, 1, flap_count_max));
  if (name == "interval") return put(spec.interval, parse_small(value, 1, interval_max));
  if (name == "to") {
    spec.destination = trim(value.text);
    return {};
  }
  return put(spec.seed, parse_small(value, 0, UINT32_MAX));
}

void set_defaults(FaultSpec& spec) {
  if (spec.kind == FaultKind::reorder) spec.delay = Duration{1'000'000'000};
  if (spec.kind == FaultKind::link_degraded) spec.queue = queue_default;
  if (spec.kind == FaultKind::icmp_ratelimit) spec.interval = 1'000;
}

void check_names(const KindRow& row, std::span<const FaultOption> options, Errors& errors) {
  std::vector<std::string> allowed;
  for (const std::string_view word : split(row.options, ' '))
    if (word != "|" && !word.empty()) allowed.emplace_back(word);
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& name = options[i].name;
    const auto same = [&](const FaultOption& other) { return other.name == name; };
    if (std::ranges::find(allowed, name) == allowed.end())
      errors.push_back({Errc::unknown,
                        {},
                        fmt::format("fault {} has no option {}{}", row.name(), quote("--" + name),
                                    did_you_mean(name, allowed)),
                        allowed.empty() ? "it takes none"
                                        : fmt::format("it takes --{}", fmt::join(allowed, ", --")),
                        {}});
    else if (std::ranges::any_of(options.first(i), same))
      errors.push_back({Errc::value, {}, fmt::format("--{} is given twice", name), {}, {}});
  }
  const std::string_view required = row.options.substr(0, row.options.find('|'));
  for (const std::string_view word : split(trim(required), ' '))
    if (!word.empty() && std::ranges::none_of(options, [&](auto& o) { return o.name == word; }))
      errors.push_back({Errc::value,
                        {},
                        fmt::format("fault {} needs --{}", row.name(), word),
                        describe(static_cast<FaultKind>(&row - kinds.data())),
                        {}});
}

}  // namespace

std::string_view to_text(FaultKind kind) { return row_of(kind).name(); }

Result<FaultKind> parse_fault_kind(const Token& token) {
  const std::string_view name = trim(token.text);
  const auto row = std::ranges::find(kinds, name, &KindRow::name);
  if (row != kinds.end()) return static_cast<FaultKind>(row - kinds.begin());
  std::vector<std::string> names;
  for (const KindRow& kind : kinds) names.emplace_back(kind.name());
  return fail(Errc::unknown, token.where,
              fmt::format("unknown fault kind {}{}", quote(name), model::fault_hint(name, names)),
              fmt::format("one of {}", fmt::join(names, ", ")));
}

std::span<const FaultOptionHelp> fault_option_help() { return options_known; }

std::string describe(FaultKind kind) {
  const KindRow& row = row_of(kind);
  std::string text = fmt::format("{}: {}; on {}", row.name(), model::fault_entry(row.fault).lab,
                                 places_text(row.places));
  bool required = true;
  for (const std::string_view word : split(row.options, ' ')) {
    if (word == "|")
      required = false;
    else if (!word.empty())
      text += required ? fmt::format(" --{}", word) : fmt::format(" [--{}]", word);
  }
  return text;
}

Result<FaultSpec> parse_fault(std::string_view kind, std::string_view target,
                              std::span<const FaultOption> options) {
  WEFT_TRY(const FaultKind known, parse_fault_kind({kind, {}}));
  FaultSpec spec{.kind = known, .target = std::string(trim(target))};
  Errors errors;
  if (spec.target.empty())
    errors.push_back({Errc::value,
                      {},
                      fmt::format("fault {} needs a target", to_text(known)),
                      describe(known),
                      {}});
  const KindRow& row = row_of(known);
  check_names(row, options, errors);
  set_defaults(spec);
  for (const FaultOption& option : options) {
    if (option.name == "|" || !lists(row.options, option.name)) continue;
    if (auto read = read_option(spec, option.name, {option.value, {}}); !read) {
      read.error().what = fmt::format("--{}: {}", option.name, read.error().what);
      errors.push_back(std::move(read).error());
    }
  }
  if (spec.ecn_threshold && *spec.ecn_threshold > spec.queue)
    errors.push_back({Errc::infeasible,
                      {},
                      "--ecn is above --queue: no packet would be marked",
                      fmt::format("the queue is {}", to_text(spec.queue)),
                      {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return spec;
}

std::vector<FaultOption> options_of(const FaultSpec& spec) {
  std::vector<FaultOption> options;
  const std::string_view takes = row_of(spec.kind).options;
  const auto add = [&](std::string_view name, std::string value) {
    if (lists(takes, name)) options.push_back({std::string(name), std::move(value)});
  };
  if (strikes_share(spec.kind)) add("rate", fmt::format("{}", spec.share));
  if (spec.kind == FaultKind::link_degraded) add("rate", to_text(spec.rate));
  if (spec.bucket) add("bucket", fmt::format("{}/{}", spec.bucket->hit, spec.bucket->of));
  if (spec.dscp) add("class", fmt::format("{}", *spec.dscp));
  if (spec.delay.ps > 0) add("delay", to_text(spec.delay));
  if (spec.jitter.ps > 0) add("jitter", to_text(spec.jitter));
  if (spec.queue.count > 0) add("queue", to_text(spec.queue));
  if (spec.ecn_threshold) add("ecn", to_text(*spec.ecn_threshold));
  add("to", spec.destination);
  add("daemon", spec.daemon);
  add("period", to_text(spec.period));
  add("count", fmt::format("{}", spec.count));
  add("interval", fmt::format("{}", spec.interval));
  add("seed", fmt::format("{}", spec.seed));
  return options;
}

namespace {

FaultSite site_of(const LabPlan& plan, EndId end) {
  return {end, plan.node_of(end).netns, plan.end(end).interface};
}

// A name that is neither direction nor cable is a node or a port; ports are written "node/7".
std::uint8_t place_of(const model::Fabric& fabric, const Token& token) {
  if (token.text.find("->") != std::string_view::npos) return on_direction;
  if (token.text.find("--") != std::string_view::npos) return on_cable;
  return !fabric.find_node(token) && fabric.find_cable(token) ? on_cable : on_switch;
}

Result<FaultTarget> find_node_target(const model::Fabric& fabric, const LabPlan& plan,
                                     const FaultSpec& spec) {
  FaultTarget target;
  WEFT_TRY(target.node, plan.find_node(fabric, {spec.target, {}}));
  const LabNode& node = plan.nodes[target.node];
  const std::uint8_t place = node.is_switch() ? on_switch : on_host;
  if ((row_of(spec.kind).places & place) == 0)
    return fail(Errc::value, {},
                fmt::format("fault {} does not work on {}", to_text(spec.kind), node.name),
                describe(spec.kind));
  target.entities = {node.name};
  for (const EndId end : node.ends) target.sites.push_back(site_of(plan, end));
  return target;
}

// Address and prefix length from "10.0.0.5", "10.0.0.0/31", or a node of the lab (its first NIC).
Status find_destination(const model::Fabric& fabric, const LabPlan& plan, const FaultSpec& spec,
                        FaultTarget& target) {
  const std::size_t slash = spec.destination.find('/');
  const std::string address = spec.destination.substr(0, slash);
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) == 1) {
    if (slash != std::string::npos) {
      WEFT_TRY(const std::uint32_t length,
               parse_small({std::string_view(spec.destination).substr(slash + 1), {}}, 1, 32));
      target.prefix_length = static_cast<std::uint8_t>(length);
    }
    target.destination = ntohl(parsed.s_addr) & (UINT32_MAX << (32 - target.prefix_length));
    return {};
  }
  const Token token{spec.destination, {}};
  if (const auto node = fabric.find_node(token);
      node && fabric.kind(*node) == model::NodeKind::nic) {
    target.destination = fabric.address(*node);
    return {};
  }
  WEFT_TRY(const LabNodeId node, plan.find_node(fabric, token));
  const LabNode& found = plan.nodes[node];
  target.destination = found.is_switch()    ? found.loopback
                       : found.ends.empty() ? 0
                                            : plan.end(found.ends.front()).address;
  if (target.destination == 0)
    return fail(Errc::value, {}, fmt::format("{} has no address", found.name),
                "use an address, a prefix, or a host or NIC of the lab");
  return {};
}

}  // namespace

Result<FaultTarget> find_target(const model::Fabric& fabric, const LabPlan& plan,
                                const FaultSpec& spec) {
  const Token token{spec.target, {}};
  const std::uint8_t places = row_of(spec.kind).places;
  const std::uint8_t place = place_of(fabric, token);
  if (place == on_switch) {
    WEFT_TRY(FaultTarget target, find_node_target(fabric, plan, spec));
    if (spec.kind == FaultKind::blackhole)
      WEFT_TRY_STATUS(find_destination(fabric, plan, spec, target));
    return target;
  }
  if ((places & place) == 0)
    return fail(Errc::value, {},
                fmt::format("fault {} does not work on {}", to_text(spec.kind), quote(spec.target)),
                describe(spec.kind));
  FaultTarget target;
  if (place == on_direction) {
    WEFT_TRY(const EndId end, plan.find_sender(fabric, token));
    target.entities = {fabric.name(plan.end(end).link)};
    target.sites = {site_of(plan, end)};
    return target;
  }
  WEFT_TRY(const LabCableId cable, plan.find_cable(fabric, token));
  target.entities = {fabric.name(plan.cables[cable].cable)};
  target.sites = {site_of(plan, {cable, 0}), site_of(plan, {cable, 1})};
  return target;
}

}  // namespace weft::adapt::lab
