#include "plan/regions/read_life_cycle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace weft::plan::regions {
namespace {

constexpr double rate_max = 1e15;      // of anything in a second
constexpr double shortest_s = 60;      // of a period, or of what it is sent in
constexpr double period_slack = 1e-9;  // of a period against whole parts of a day

class LifeCycleReader {
 public:
  LifeCycleReader(Problem& problem, Errors& errors) : out_(problem.life_cycle), errors_(errors) {
    for (const Region& r : problem.regions) add_name(regions_, r.name);
    for (const DataSet& d : problem.data) add_name(data_, d.name);
    for (const Job& j : problem.jobs) add_name(jobs_, j.name);
  }

  void read(Reader& reader) {
    read_day(reader);
    read_replication(reader);
    read_classes(reader);
    each(reader, "ingest", [this](Reader& row) { read_ingest(row); });
    each(reader, "freshness", [this](Reader& row) { read_freshness(row); });
    each(reader, "checkpoints", [this](Reader& row) { read_checkpoints(row); });
    each(reader, "inference", [this](Reader& row) { read_inference(row); });
    each(reader, "other", [this](Reader& row) { read_other(row); });
  }

 private:
  struct Names {
    std::map<std::string, std::uint32_t, std::less<>> number;
    std::vector<std::string> all;
  };
  static void add_name(Names& names, const std::string& name) {
    names.number.emplace(name, static_cast<std::uint32_t>(names.all.size()));
    names.all.push_back(name);
  }

  template <class Read>
  void each(Reader& reader, const char* key, const Read& read) {
    const Config* list = reader.child(key);
    if (list == nullptr) return;
    out_.given = true;
    if (list->kind != Config::Kind::list || list->items.empty() || list->items.size() > items_max) {
      reader.error(Errc::parse, list->where,
                   fmt::format("{} must be a list of 1 to {}", quote(key), items_max),
                   "write one {...} for each");
      return;
    }
    for (const Config& item : list->items) {
      if (errors_.size() >= errors_max) return;
      Reader row(item, key, errors_);
      read(row);
      row.finish();
    }
  }

  // 0 where there is an error.
  std::uint32_t find(const Names& names, const char* what, const Token& name) {
    const auto at = names.number.find(name.text);
    if (at != names.number.end()) return at->second;
    errors_.push_back({Errc::unknown,
                       name.where,
                       fmt::format("there is no {} {}{}", what, quote(name.text),
                                   did_you_mean(name.text, names.all)),
                       fmt::format("name one of the file's {}s", what),
                       {}});
    return 0;
  }
  std::uint32_t one(Reader& row, const Names& names, const char* key, const char* what) {
    const std::string name = row.text(key, std::nullopt);
    return name.empty() ? 0 : find(names, what, {name, row.where(key)});
  }
  std::uint32_t region(Reader& row, const char* key) { return one(row, regions_, key, "region"); }
  std::uint32_t data(Reader& row) { return one(row, data_, "data", "data set"); }
  std::uint32_t job(Reader& row, const char* key) { return one(row, jobs_, key, "job"); }

  double seconds(Reader& row, const char* key, double fallback) {
    const double out = row.duration(key, from_seconds(fallback)).seconds();
    if (out < shortest_s)
      row.error(Errc::value, row.where(key), fmt::format("{} below 1 min", quote(key)),
                "give 1 min or more");
    return std::max(out, shortest_s);
  }

  Period read_period(Reader& row) {
    Period out;
    out.every = seconds(row, "every", day_seconds);
    out.within = seconds(row, "within", out.every);
    out.at = row.duration("at", Duration{0}).seconds();
    const double parts = day_seconds / out.every;
    if (out.within > out.every)
      row.error(Errc::value, row.where("within"), "\"within\" above \"every\"",
                "send what is due before the next is");
    else if (out.within < out.every &&
             (parts < 1 || std::abs(parts - std::round(parts)) > period_slack * parts))
      row.error(Errc::value, row.where("every"), "\"within\" needs an \"every\" that divides a day",
                "give e.g. every: 6 h, or leave within out: then it is sent evenly");
    if (out.at >= day_seconds)
      row.error(Errc::value, row.where("at"), "\"at\" is not within the day", "give 0 h to 23 h");
    return out;
  }

  // Users by hour of the day; any unit.
  void read_day(Reader& reader) {
    out_.day.fill(1);
    const Config* list = reader.child("day");
    if (list == nullptr) return;
    const auto refuse = [&](const Where& where) {
      reader.error(Errc::value, where, "\"day\" must be 24 numbers of 0 or more, not all 0",
                   "write the users of each hour, from midnight of their clocks");
    };
    if (list->kind != Config::Kind::list || list->items.size() != hours) return refuse(list->where);
    for (std::size_t h = 0; h < hours; ++h) {
      const Config& item = list->items[h];
      const auto value =
          item.kind == Config::Kind::scalar ? parse_number(token_of(item)) : Result<double>(-1.0);
      if (!value || !(*value >= 0 && *value <= rate_max)) return refuse(item.where);
      out_.day[h] = *value;
    }
    const double sum = std::accumulate(out_.day.begin(), out_.day.end(), 0.0);
    if (sum <= 0) return refuse(list->where);
    for (double& value : out_.day) value *= hours / sum;
  }

  void read_replication(Reader& reader) {
    const Config* section = reader.child("replication");
    if (section == nullptr) return;
    out_.given = true;
    Reader row(*section, "replication", errors_);
    out_.replication_seconds = seconds(row, "within", day_seconds);
    row.finish();
  }

  void read_classes(Reader& reader) {
    const Config* section = reader.child("classes");
    if (section == nullptr) return;
    Reader row(*section, "classes", errors_);
    for (std::size_t c = 0; c < cause_count; ++c)
      out_.classes[c] = static_cast<std::uint8_t>(
          row.count(backbone::cause_names[c], out_.classes[c], 1, backbone::class_count));
    row.finish();
  }

  void read_ingest(Reader& row) {
    Ingest out{.data = data(row), .from = region(row, "from")};
    out.bytes = static_cast<double>(row.bytes("per_day", std::nullopt).count);
    out_.ingest.push_back(out);
    ingested_[out.data] += out.bytes;
  }

  void read_freshness(Reader& row) {
    Freshness out{.data = data(row), .period = read_period(row)};
    if (row.has("bytes"))
      out.bytes = static_cast<double>(row.bytes("bytes", std::nullopt).count);
    else if (const auto daily = ingested_.find(out.data); daily != ingested_.end())
      out.bytes = daily->second * out.period.every / day_seconds;
    else
      row.error(Errc::parse, row.where(), "\"bytes\" is missing, and nothing is ingested",
                "give the bytes that change in each period, or the set's ingest:");
    out_.freshness.push_back(out);
  }

  void read_checkpoints(Reader& row) {
    Checkpoints out{.job = job(row, "job"), .period = read_period(row)};
    out.bytes = static_cast<double>(row.bytes("bytes", std::nullopt).count);
    for (const Token& name : row.texts("to"))
      out.to |= std::uint64_t{1} << find(regions_, "region", name);
    if (out.to == 0)
      row.error(Errc::parse, row.where(), "\"to\" is missing", "name the regions that get a copy");
    out_.checkpoints.push_back(out);
  }

  void read_inference(Reader& row) {
    Inference out{.job = job(row, "job"), .users = region(row, "users")};
    out.prompt_tokens_per_s = row.number("prompt_tokens_per_s", 0.0, 0, rate_max);
    out.tokens_per_s = row.number("tokens_per_s", std::nullopt, 0, rate_max);
    out.bytes_per_token = row.number("bytes_per_token", std::nullopt, 0, 1e9);
    if (row.has("prefill")) {
      out.prefill = job(row, "prefill");
      out.kv_bytes_per_token = row.number("kv_bytes_per_token", std::nullopt, 0, 1e9);
    }
    out_.inference.push_back(out);
  }

  void read_other(Reader& row) {
    const std::uint32_t from = region(row, "from"), to = region(row, "to");
    out_.other.push_back({from, to, static_cast<double>(row.rate("rate", std::nullopt).bps)});
  }

  LifeCycle& out_;
  Errors& errors_;
  Names regions_, data_, jobs_;
  std::map<std::uint32_t, double> ingested_;  // by data set, in a day
};

}  // namespace

void read_life_cycle(Reader& reader, Problem& problem, Errors& errors) {
  LifeCycleReader(problem, errors).read(reader);
}

}  // namespace weft::plan::regions
