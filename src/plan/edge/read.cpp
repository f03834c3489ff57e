#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <optional>

#include "base/config.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "plan/edge/edge.hpp"

namespace weft::plan::edge {
namespace {

constexpr double km_per_s_in_fibre = 299'792.458 * 2 / 3, earth_radius_km = 6371;
constexpr double price_max = 1e9, requests_max = 1e12, gpus_max = 1e9;
constexpr std::uint64_t csv_bytes_max = std::uint64_t{64} << 20;
constexpr std::int64_t objects_max = 1'000'000'000'000;

// Great circle, by the haversine formula.
double kilometres(const Place& a, const Place& b) {
  constexpr double radian = std::numbers::pi / 180;
  const double north = std::sin((b.latitude - a.latitude) * radian / 2);
  const double east = std::sin((b.longitude - a.longitude) * radian / 2);
  const double h =
      north * north + std::cos(a.latitude * radian) * std::cos(b.latitude * radian) * east * east;
  return 2 * earth_radius_km * std::asin(std::min(1.0, std::sqrt(h)));
}

// An area, metro or data centre: number in its kind.
enum class Kind : std::uint8_t { area, metro, centre };
struct Site {
  Kind kind;
  std::uint32_t number;
  std::string name;
  Where where;
  std::optional<Place> place;
};

class EdgeReader {
 public:
  explicit EdgeReader(const std::string& file) : file_(file) {}

  Result<Problem> read(const Config& root) {
    Reader reader(root, "the file", errors_);
    problem_.currency = reader.text("currency", "USD");
    problem_.use_max = reader.number("use_max", 1, 0.01, 1);
    problem_.detour = reader.number("detour", problem_.detour, 1, 10);
    problem_.delay_price = reader.number("delay_price", problem_.delay_price, 0, price_max);
    const std::string rtt = reader.text("rtt", "");
    const Where rtt_where = reader.where("rtt");
    read_list(reader, "services", services_max, [&](const Config& c) { read_service(c); });
    read_list(reader, "areas", areas_max, [&](const Config& c) { read_area(c); });
    read_list(reader, "metros", metros_max, [&](const Config& c) { read_metro(c); });
    read_list(reader, "data_centres", data_centres_max, [&](const Config& c) { read_centre(c); });
    reader.finish();
    if (errors_.empty()) measure(rtt, rtt_where);
    if (errors_.empty()) check_reach();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(problem_);
  }

 private:
  void add(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  template <class Read>
  void read_list(Reader& reader, const char* key, std::size_t most, const Read& read) {
    const Config* list = reader.child(key);
    if (list != nullptr && list->kind == Config::Kind::list && !list->items.empty() &&
        list->items.size() <= most) {
      for (const Config& item : list->items) read(item);
      return;
    }
    add(Errc::parse, list != nullptr ? list->where : reader.where(),
        fmt::format("{} must be a list of 1 to {}", quote(key), most),
        "write one {...} for each; see docs/commands/edge.md");
  }

  void read_service(const Config& item) {
    Reader entry(item, "service", errors_);
    Service out{.name = entry.text("name", std::nullopt)};
    out.within_s = entry.duration("within", std::nullopt).seconds();
    const Bytes response = entry.bytes("response", std::nullopt);
    out.response_bytes = static_cast<double>(response.count);
    out.gpu_s = entry.duration("gpu_time", Duration{0}).seconds();
    Content& content = out.content;
    content.share = entry.number("cacheable", out.gpu_s > 0 ? 0 : 1, 0, 1);
    const bool is_cached = content.share > 0;
    const std::optional<std::int64_t> one =
        is_cached ? std::nullopt : std::optional(std::int64_t{1});
    content.objects = static_cast<std::uint64_t>(entry.count("objects", one, 1, objects_max));
    content.object_bytes = static_cast<double>(entry.bytes("object", response).count);
    content.zipf = entry.number("zipf", is_cached ? std::nullopt : std::optional(0.0), 0, 4);
    entry.finish();
    if (is_cached && content.object_bytes <= 0)
      add(Errc::value, item.where, "objects of 0 bytes", "give \"object\" or \"response\"");
    if (out.within_s <= 0)
      add(Errc::value, entry.where("within"), "no time to answer in",
          "give the longest round trip, e.g. within: 40 ms");
    if (std::ranges::find(service_names_, out.name) != service_names_.end())
      add(Errc::value, item.where, fmt::format("two services are named {}", quote(out.name)),
          "give each a name of its own");
    service_names_.push_back(out.name);
    problem_.services.push_back(std::move(out));
  }

  // Name and place; names differ over all kinds, for the rows of rtt: name them.
  std::string read_site(Reader& entry, const Config& item, Kind kind, std::size_t number) {
    Site site{kind, static_cast<std::uint32_t>(number), entry.text("name", std::nullopt),
              item.where, std::nullopt};
    const std::vector<Token> at = entry.texts("at");
    if (!at.empty()) site.place = place_of(at, entry.where("at"));
    if (!by_name_.emplace(site.name, sites_.size()).second)
      add(Errc::value, item.where,
          fmt::format("two areas, metros or data centres are named {}", quote(site.name)),
          "give each a name of its own, e.g. \"paris users\"");
    names_.push_back(site.name);
    sites_.push_back(std::move(site));
    return names_.back();
  }

  std::optional<Place> place_of(const std::vector<Token>& at, const Where& where) {
    Place out{};
    bool is_good = at.size() == 2;
    for (std::size_t i = 0; is_good && i < 2; ++i) {
      const auto value = parse_number(at[i]);
      is_good = value && std::abs(*value) <= (i == 0 ? 90 : 180);
      if (is_good) (i == 0 ? out.latitude : out.longitude) = *value;
    }
    if (is_good) return out;
    add(Errc::value, where, "no latitude and longitude",
        "write degrees, south and west below 0, e.g. at: [52.5, 13.4]");
    return std::nullopt;
  }

  void read_area(const Config& item) {
    Reader entry(item, "area", errors_);
    Area out{.name = read_site(entry, item, Kind::area, problem_.areas.size())};
    const Config* requests = entry.child("requests");
    out.requests.assign(problem_.services.size(), 0.0);
    if (requests == nullptr) {
      add(Errc::parse, item.where, "\"requests\" is missing",
          "give requests per second at the peak, e.g. requests: {chat: 900}");
    } else {
      Reader rates(*requests, "requests", errors_);
      for (std::size_t s = 0; s < out.requests.size(); ++s)
        out.requests[s] = rates.number(problem_.services[s].name, 0, 0, requests_max);
      rates.finish();
    }
    entry.finish();
    problem_.areas.push_back(std::move(out));
  }

  void read_metro(const Config& item) {
    Reader entry(item, "metro", errors_);
    Metro out{.name = read_site(entry, item, Kind::metro, problem_.metros.size())};
    out.gpus = entry.number("gpus", 0, 0, gpus_max);
    out.gpu_price =
        entry.number("gpu_price", out.gpus > 0 ? std::nullopt : std::optional(0.0), 0, price_max);
    out.cache_bytes = static_cast<double>(entry.bytes("cache", Bytes{0}).count);
    out.cache_price = entry.number("cache_price", 0, 0, price_max);
    out.uplink_bps = static_cast<double>(entry.rate("uplink", Rate{0}).bps);
    out.uplink_price = entry.number("uplink_price", 0, 0, price_max);
    entry.finish();
    problem_.metros.push_back(std::move(out));
  }

  void read_centre(const Config& item) {
    Reader entry(item, "data centre", errors_);
    DataCentre out{.name = read_site(entry, item, Kind::centre, problem_.data_centres.size())};
    out.gpus = entry.number("gpus", std::nullopt, 0, gpus_max);
    out.gpu_price = entry.number("gpu_price", std::nullopt, 0, price_max);
    entry.finish();
    problem_.data_centres.push_back(std::move(out));
  }

  // The cell of the round trip between two sites, either way; nullptr for two of a kind.
  double* cell(const Site& from, const Site& to) {
    const Site &a = from.kind < to.kind ? from : to, &b = from.kind < to.kind ? to : from;
    if (a.kind == b.kind) return nullptr;
    if (a.kind == Kind::metro)
      return &problem_.to_centre[a.number * problem_.data_centres.size() + b.number];
    if (b.kind == Kind::metro)
      return &problem_.to_metro[a.number * problem_.metros.size() + b.number];
    return &problem_.direct[a.number * problem_.data_centres.size() + b.number];
  }

  void measure(const std::string& rtt, const Where& where) {
    const std::size_t areas = problem_.areas.size(), metros = problem_.metros.size();
    const std::size_t centres = problem_.data_centres.size();
    if (areas * metros * (1 + centres) * problem_.services.size() > columns_max)
      return add(Errc::unsupported, {file_, 1, 1},
                 fmt::format("more than {} ways of areas over metros to data centres", columns_max),
                 "join areas that are close to each other");
    problem_.to_metro.assign(areas * metros, -1);
    problem_.to_centre.assign(metros * centres, -1);
    problem_.direct.assign(areas * centres, -1);
    if (!rtt.empty()) read_rtt(rtt, where);
    for (std::size_t i = 0; i < sites_.size(); ++i)
      for (std::size_t j = i + 1; j < sites_.size(); ++j) fill(sites_[i], sites_[j]);
    // By kind, for maps.
    for (const Kind kind : {Kind::area, Kind::metro, Kind::centre})
      for (const Site& site : sites_)
        if (site.kind == kind && site.place) problem_.places.push_back(*site.place);
    if (problem_.places.size() != sites_.size()) problem_.places.clear();
    // Direct ones are for comparison only: those that are not known go over the best metro.
    for (std::size_t a = 0; a < areas; ++a)
      for (std::size_t d = 0; d < centres; ++d) {
        double& direct = problem_.direct[a * centres + d];
        if (direct >= 0) continue;
        direct = HUGE_VAL;
        for (std::size_t m = 0; m < metros; ++m)
          direct = std::min(direct, problem_.rtt(a, m) + problem_.rtt_on(m, d));
      }
  }

  void fill(const Site& a, const Site& b) {
    double* const value = cell(a, b);
    if (value == nullptr || *value >= 0) return;
    if (a.place && b.place) {
      *value = 2 * kilometres(*a.place, *b.place) * problem_.detour / km_per_s_in_fibre;
    } else if (a.kind == Kind::metro || b.kind == Kind::metro) {
      add(Errc::value, a.where,
          fmt::format("no round trip between {} and {}", quote(a.name), quote(b.name)),
          "add a row to the CSV file of \"rtt\", or \"at\" to both");
    }
  }

  void read_rtt(const std::string& name, const Where& where) {
    const std::string path = (std::filesystem::path(file_).parent_path() / name).string();
    const auto text = read_file(path, csv_bytes_max);
    if (!text) return add(text.error().code, where, text.error().what, text.error().hint);
    CsvReader csv(*text, path);
    const std::vector<std::string> required{"from", "to", "rtt"};
    if (const Status head = csv.header(required, {}); !head) return errors_.push_back(head.error());
    while (csv.next() && errors_.size() < errors_max) read_row(csv);
    if (csv.error() != nullptr) errors_.push_back(*csv.error());
  }

  void read_row(const CsvReader& csv) {
    const auto from = by_name_.find(std::string(csv.cell(0).text));
    const auto to = by_name_.find(std::string(csv.cell(1).text));
    const auto rtt = parse_duration(csv.cell(2));
    if (!rtt) return errors_.push_back(rtt.error());
    for (std::size_t i = 0; i < 2; ++i)
      if ((i == 0 ? from : to) == by_name_.end())
        return add(Errc::unknown, csv.cell(i).where,
                   fmt::format("there is no {}{}", quote(csv.cell(i).text),
                               did_you_mean(csv.cell(i).text, names_)),
                   "name an area, a metro or a data centre");
    const Site &a = sites_[from->second], &b = sites_[to->second];
    double* const value = cell(a, b);
    if (value == nullptr)
      return add(Errc::value, csv.where(), "a round trip between two of a kind",
                 "give those of areas to metros, and of metros to data centres");
    if (*value >= 0)
      return add(Errc::value, csv.where(),
                 fmt::format("a second round trip between {} and {}", quote(a.name), quote(b.name)),
                 "give each pair once");
    *value = rtt->seconds();
    problem_.measured += a.kind == Kind::metro || b.kind == Kind::metro ? 1 : 0;
  }

  // Services that nobody can answer in time, or only where there is nothing to do it with.
  void check_reach() {
    for (std::size_t a = 0; a < problem_.areas.size(); ++a)
      for (std::size_t s = 0; s < problem_.services.size(); ++s)
        if (problem_.areas[a].requests[s] > 0) check_reach(a, s);
  }

  void check_reach(std::size_t a, std::size_t s) {
    const Service& service = problem_.services[s];
    double least = HUGE_VAL;  // to where it can be answered
    const std::string* where = nullptr;
    const auto offer = [&](double rtt, const std::string& name) {
      if (rtt >= least) return;
      least = rtt;
      where = &name;
    };
    for (std::size_t m = 0; m < problem_.metros.size(); ++m) {
      const Metro& metro = problem_.metros[m];
      if (service.gpu_s > 0 && metro.gpus > 0) offer(problem_.rtt(a, m), metro.name);
      if (metro.uplink_bps <= 0) continue;
      for (std::size_t d = 0; d < problem_.data_centres.size(); ++d)
        if (service.gpu_s <= 0 || problem_.data_centres[d].gpus > 0)
          offer(problem_.rtt(a, m) + problem_.rtt_on(m, d), problem_.data_centres[d].name);
    }
    if (least <= service.within_s) return;
    const Where& line = sites_[by_name_.at(problem_.areas[a].name)].where;
    const std::string asked =
        fmt::format("area {} cannot be served {} within {}", quote(problem_.areas[a].name),
                    quote(service.name), human_seconds(service.within_s));
    if (where == nullptr)
      return add(Errc::infeasible, line, asked + ": no metro has an uplink or GPUs",
                 "give metros an uplink to a data centre, or GPUs");
    add(Errc::infeasible, line,
        fmt::format("{}: the nearest that can answer, {}, is {} away", asked, quote(*where),
                    human_seconds(least)),
        service.gpu_s > 0 ? "raise \"within\", or give a nearer metro GPUs"
                          : "raise \"within\", or add a nearer metro or data centre");
  }

  std::string file_;
  Errors errors_;
  Problem problem_;
  std::vector<Site> sites_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::string> names_, service_names_;
};

}  // namespace

Result<Problem> read_problem(std::string_view yaml, const std::string& file) {
  WEFT_TRY(const Config root, parse_yaml(yaml, file));
  return EdgeReader(file).read(root);
}

}  // namespace weft::plan::edge
