#include "plan/scale/live.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/json_line.hpp"

namespace weft::plan::scale {
namespace {

// Also where their difference in nanoseconds does not fit.
double seconds_between(Timestamp from, Timestamp to) {
  return (static_cast<double>(to.ns) - static_cast<double>(from.ns)) / ns_per_s;
}

constexpr std::int64_t day_of_ns = 24 * ns_per_hour;
constexpr std::size_t days_kept = 23;  // what the predictor looks back to: 14 days of errors of
                                       // forecasts from 7 days before, and some
constexpr std::int64_t ahead_most = 30 * day_of_ns;
constexpr std::int64_t step_least_ns = 30 * ns_per_s;
constexpr std::int64_t settle_ns = 300 * ns_per_s;  // the HPA's stabilisation window

std::int64_t ns_of(Duration d) { return d.ps / 1000; }

bool is_label(std::string_view text) {
  const auto is_fit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && is_fit(text.front()) && is_fit(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_fit(c) || c == '-'; });
}

std::string read_label(Reader& reader, std::string_view key,
                       const std::optional<std::string>& fallback) {
  std::string out = reader.text(key, fallback);
  if (!is_label(out))
    reader.error(Errc::value, reader.where(key),
                 fmt::format("\"{}\" is not a name that Kubernetes accepts", out),
                 "use a-z, 0-9 and -, up to 63");
  return out;
}

std::vector<Pool> read_pools(Reader& from, Errors& errors) {
  std::vector<Pool> out;
  const Config* list = from.child("pools");
  if (list == nullptr) return out;
  for (const Config& item : list->items) {
    Reader reader(item, "pool", errors);
    Pool& pool = out.emplace_back();
    pool.site = read_label(reader, "site", std::nullopt);
    pool.most = static_cast<std::uint32_t>(reader.count("max", std::nullopt, 0, 1'000'000));
    reader.finish();
  }
  if (out.empty())
    from.error(Errc::value, from.where("pools"), "pools is not a list of {site, max}",
               "write pools: [{site: fra1, max: 40}]");
  return out;
}

LiveSettings read_service(const Config& config, Errors& errors) {
  Reader reader(config, "service", errors);
  LiveSettings out;
  out.name = read_label(reader, "name", std::nullopt);
  out.tenant = read_label(reader, "tenant", "default");
  out.series = reader.text("series", "");
  out.query = reader.text("query", "");
  out.step_ns = ns_of(reader.duration("step", parse_duration({"1 min", {}}).value()));
  if (out.step_ns < step_least_ns || day_of_ns % out.step_ns != 0)
    reader.error(Errc::value, reader.where("step"),
                 "a step must be 30 s or longer, and a day a whole number of them", "use 1 min");
  out.step_ns = std::max(out.step_ns, step_least_ns);
  Service& service = out.service;
  service.step_hours = static_cast<double>(out.step_ns) / static_cast<double>(ns_per_hour);
  service.capacity = reader.number("capacity", std::nullopt, 1e-9, 1e15);
  service.limit = reader.number("limit", 0.9, 0.01, 1);
  const std::int64_t start_up =
      ns_of(reader.duration("start_up", parse_duration({"15 min", {}}).value()));
  service.start_up = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (start_up + out.step_ns - 1) / out.step_ns));
  service.stabilisation =
      static_cast<std::size_t>(std::max<std::int64_t>(1, settle_ns / out.step_ns));
  service.least = static_cast<std::uint32_t>(reader.count("min", 1, 1, 1'000'000));
  out.pools = read_pools(reader, errors);
  std::uint64_t room = 0;
  for (const Pool& pool : out.pools) room += pool.most;
  const auto most = reader.count(
      "max",
      out.pools.empty() ? 1'000'000 : static_cast<std::int64_t>(std::max<std::uint64_t>(1, room)),
      1, 1'000'000);
  service.most = static_cast<std::uint32_t>(most);
  if (service.least > service.most || (!out.pools.empty() && service.most > room))
    reader.error(Errc::value, reader.where("max"), "min, max and the pools do not go together",
                 "min is at most max, and max at most what the pools hold together");
  service.least = std::min(service.least, service.most);
  if (auto policy = parse_policy({reader.text("policy", "hybrid:0.99"), reader.where("policy")});
      !policy)
    reader.error(std::move(policy).error());
  else if (policy->kind == PolicyKind::oracle)
    reader.error(Errc::value, reader.where("policy"),
                 "the oracle needs the future load, which a live service does not have",
                 "use reactive, predictive or hybrid");
  else
    out.policy = *policy;
  out.stale_steps = static_cast<std::size_t>(reader.count("stale", 5, 1, 10'000));
  reader.finish();
  return out;
}

}  // namespace

Result<LiveConfig> read_live(const Config& config) {
  Errors errors;
  Reader reader(config, "scaler", errors);
  LiveConfig out;
  if (const Config* prometheus = reader.child("prometheus")) {
    Reader inner(*prometheus, "prometheus", errors);
    out.prometheus = inner.text("url", std::nullopt);
    out.token_file = inner.text("token", "");
    out.ca_file = inner.text("ca_file", "");
    inner.finish();
  }
  const Config* services = reader.child("services");
  if (services != nullptr)
    for (const Config& item : services->items) out.services.push_back(read_service(item, errors));
  if (out.services.empty() || out.services.size() > live_services_max)
    reader.error(Errc::value, reader.where("services"),
                 fmt::format("services is not a list of 1 to {} services", live_services_max),
                 "write services: [{name: shop, capacity: 40}]");
  std::set<std::pair<std::string, std::string>> names;
  for (const LiveSettings& service : out.services) {
    if (!names.insert({service.tenant, service.name}).second)
      reader.error(Errc::value, reader.where("services"),
                   fmt::format("{}/{} is listed twice", service.tenant, service.name),
                   "give each its own name");
    if (!service.query.empty() && out.prometheus.empty())
      reader.error(Errc::value, reader.where("prometheus"),
                   fmt::format("{} has a query, and there is no prometheus", service.name),
                   "write prometheus: {url: \"http://127.0.0.1:9090\"}");
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::uint32_t LiveScaler::Wish::all() const {
  std::uint32_t out = 0;
  for (const auto& [site, count] : replicas) out += count;
  return out;
}

LiveScaler::LiveScaler(LiveSettings settings, observe::forecast::Series series)
    : settings_(std::move(settings)), series_(std::move(series)) {
  if (series_.values.empty()) return;
  from_ = series_.values.size() - 1;
  has_begun_ = true;
  decide();
}

Result<std::unique_ptr<LiveScaler>> LiveScaler::open(LiveSettings settings,
                                                     observe::forecast::Series history) {
  if (!history.values.empty() && history.step_ns != settings.step_ns)
    return fail(Errc::value, {settings.series},
                fmt::format("the history of {} has steps of {} s, and the service of {} s",
                            settings.name, static_cast<double>(history.step_ns) / ns_per_s,
                            static_cast<double>(settings.step_ns) / ns_per_s),
                "set step: to that of the file");
  for (const double value : history.values)
    if (value < 0)
      return fail(Errc::value, {settings.series}, fmt::format("demand {} is below 0", value),
                  "give requests per step");
  history.step_ns = settings.step_ns;
  return std::make_unique<LiveScaler>(std::move(settings), std::move(history));
}

Result<std::size_t> LiveScaler::push(std::span<const Sample> samples) {
  const std::lock_guard lock(mutex_);
  observe::forecast::Series next = series_;
  std::size_t taken = 0;
  Timestamp before{INT64_MIN};
  for (const Sample& sample : samples) {
    if (!std::isfinite(sample.value) || sample.value < 0 || sample.value > 1e100)
      return fail(Errc::value, {}, fmt::format("{} is not a demand", sample.value),
                  "give requests per step, 0 or more");
    if (sample.t <= before)
      return fail(Errc::value, {}, "the samples do not follow each other in time", "sort them");
    before = sample.t;
    if (next.values.empty()) next.start = sample.t;
    if (sample.t < next.start &&
        seconds_between(sample.t, next.start) * ns_per_s > static_cast<double>(next.step_ns) / 2)
      continue;
    if (seconds_between(next.start, sample.t) > 1e9)
      return fail(Errc::value, {}, "a sample lies more than 30 years behind the first one",
                  "check the times, or begin anew");
    const std::int64_t since = sample.t.ns - next.start.ns + next.step_ns / 2;
    if (since < 0) continue;
    const auto step = static_cast<std::size_t>(since / next.step_ns);
    if (step < next.values.size()) continue;
    if (static_cast<std::int64_t>(step - next.values.size()) > ahead_most / next.step_ns)
      return fail(Errc::value, {}, "a sample lies more than a month behind the one before it",
                  "check the times, or begin anew");
    next.values.resize(step, std::numeric_limits<double>::quiet_NaN());
    next.values.push_back(sample.value);
    ++taken;
  }
  if (taken == 0) return 0;
  series_ = std::move(next);
  const std::size_t most = days_kept * static_cast<std::size_t>(day_of_ns / series_.step_ns);
  if (series_.values.size() > most) {
    const auto gone = static_cast<std::ptrdiff_t>(series_.values.size() - most);
    series_.values.erase(series_.values.begin(), series_.values.begin() + gone);
    series_.events.erase(series_.events.begin(),
                         series_.events.begin() +
                             std::min(gone, static_cast<std::ptrdiff_t>(series_.events.size())));
    series_.start.ns += gone * series_.step_ns;
    from_ -= std::min(from_, static_cast<std::size_t>(gone));
  }
  has_begun_ = true;
  decide();
  return taken;
}

void LiveScaler::decide() {
  asked_ = simulate(demand_of(series_), from_, settings_.service, settings_.policy).asked.back();
}

Result<LiveScaler::Wish> LiveScaler::wish(Timestamp now) const {
  const std::lock_guard lock(mutex_);
  if (!has_begun_)
    return fail(Errc::infeasible, {}, fmt::format("{} has no demand yet", settings_.name),
                "push samples, or look at its query");
  const auto last = static_cast<std::int64_t>(series_.values.size()) - 1;
  const Timestamp t{series_.start.ns + last * series_.step_ns};
  const double patience_s =
      static_cast<double>(settings_.stale_steps) * static_cast<double>(series_.step_ns) / ns_per_s;
  if (seconds_between(t, now) > patience_s)
    return fail(Errc::infeasible, {},
                fmt::format("the last demand of {} is of {}", settings_.name, to_text(t)),
                "until demand is measured again, keep what there is");
  Wish out{.t = t, .demand = series_.values.back()};
  std::uint32_t left = asked_;
  for (const Pool& pool : settings_.pools) {
    out.replicas.emplace_back(pool.site, std::min(left, pool.most));
    left -= out.replicas.back().second;
  }
  if (settings_.pools.empty()) out.replicas.emplace_back("", left);
  return out;
}

std::optional<Timestamp> LiveScaler::last() const {
  const std::lock_guard lock(mutex_);
  if (series_.values.empty()) return std::nullopt;
  return Timestamp{series_.start.ns +
                   (static_cast<std::int64_t>(series_.values.size()) - 1) * series_.step_ns};
}

Result<std::vector<Sample>> read_samples(std::string_view csv, const std::string& file) {
  static const std::array<std::string, 2> columns{"time", "value"};
  CsvReader reader(csv, file);
  WEFT_TRY_STATUS(reader.header(columns, {}));
  std::vector<Sample> out;
  while (reader.next()) {
    Sample& sample = out.emplace_back();
    WEFT_TRY(sample.t, parse_timestamp(reader.cell(0)));
    WEFT_TRY(sample.value, parse_number(reader.cell(1)));
  }
  if (reader.error() != nullptr) return std::unexpected(*reader.error());
  return out;
}

Result<std::vector<Sample>> read_range_answer(std::string_view json, const std::string& what) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(json, {what}));
  const JsonNode data = line.node().member("data"), result = data.member("result");
  if (line.node().member("status").text() != "success" ||
      data.member("resultType").text() != "matrix" || !result.is_list())
    return fail(Errc::value, {what}, "the answer is not a Prometheus matrix",
                "give the address of a Prometheus");
  if (result.size() > 1)
    return fail(Errc::value, {what}, fmt::format("the query gives {} series", result.size()),
                "add them up: sum(...)");
  std::vector<Sample> out;
  if (result.size() == 0) return out;
  const JsonNode values = result.item(0).member("values");
  for (std::size_t i = 0; values.is_list() && i < values.size(); ++i) {
    const JsonNode pair = values.item(i);
    const bool is_pair = pair.is_list() && pair.size() == 2;
    const auto seconds = is_pair ? pair.item(0).number() : std::nullopt;
    const auto text = is_pair ? pair.item(1).text() : std::nullopt;
    const auto value = text ? parse_number({*text, {}}) : fail(Errc::parse, {}, "");
    if (!seconds || !(std::abs(*seconds) < 9e9) || !value)
      return fail(Errc::value, {what},
                  fmt::format("value {} of the answer is not a time and a number", i + 1),
                  "a query whose values are numbers, not NaN");
    out.push_back({{std::llround(*seconds * ns_per_s)}, *value});
  }
  return out;
}

}  // namespace weft::plan::scale
