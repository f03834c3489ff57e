#include "plan/backbone/wan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <pugixml.hpp>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/line_index.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "base/whole_number.hpp"
#include "plan/backbone/paths.hpp"

namespace weft::plan::backbone {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{256} << 20;

// Collects sites and cables with what is wrong about them.
class WanBuilder {
 public:
  explicit WanBuilder(const WanOptions& options)
      : options_(options), draw_(Rng(options.seed).stream("capacity")) {}

  void error(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  void error(Error e) {
    if (errors_.size() < errors_max) errors_.push_back(std::move(e));
  }

  // A site with an id that edges name, and the name that it is shown by.
  void add_site(const std::string& id, std::string name, const Where& where) {
    if (out_.wan.sites.size() == site_count_max)
      return error(Errc::unsupported, where, fmt::format("more than {} sites", site_count_max),
                   "split the network");
    const auto [it, is_new] = by_id_.try_emplace(id, sites_u32());
    if (!is_new)
      return error(Errc::value, where, fmt::format("duplicate site {}", quote(id)),
                   "give each site a unique id");
    if (!names_.try_emplace(name, sites_u32()).second) name = fmt::format("{}#{}", name, id);
    names_.try_emplace(name, sites_u32());
    out_.wan.sites.push_back(std::move(name));
    out_.wan.places.emplace_back();
  }
  // Of the last site; nowhere unless both are stated.
  void set_place(const Token& lon, const Token& lat) {
    if (trim(lon.text).empty() || trim(lat.text).empty() || out_.wan.places.empty()) return;
    const auto x = parse_number(lon), y = parse_number(lat);
    if (!x) return error(x.error());
    if (!y) return error(y.error());
    out_.wan.places.back() = {.lon = *x, .lat = *y};
  }
  std::optional<std::uint32_t> site(std::string_view id, const Where& where) {
    if (const auto it = by_id_.find(id); it != by_id_.end()) return it->second;
    std::vector<std::string> ids;
    for (const auto& [known, index] : by_id_) ids.push_back(known);
    error(Errc::unknown, where,
          fmt::format("no site {}{}", quote(id), ids.size() < 2000 ? did_you_mean(id, ids) : ""),
          "use the id of a site of this file");
    return std::nullopt;
  }
  std::uint32_t site_or_new(std::string_view id, const Where& where) {
    const auto it = by_id_.find(id);
    if (it != by_id_.end()) return it->second;
    add_site(std::string(id), std::string(id), where);
    return sites_u32() - 1;
  }

  void add_cable(std::uint32_t a, std::uint32_t b, std::optional<double> gbps, std::string group,
                 const Where& where) {
    if (out_.wan.cables.size() == cable_count_max)
      return error(Errc::unsupported, where, fmt::format("more than {} cables", cable_count_max),
                   "split the network");
    if (a == b)
      return error(Errc::value, where,
                   fmt::format("a cable from {} to itself", quote(out_.wan.sites[a])), "remove it");
    if (!gbps && !options_.capacity.empty()) {
      const Rate rate = options_.capacity[draw_.below(options_.capacity.size())];
      gbps = static_cast<double>(rate.bps) * 1e-9;
    }
    if (!gbps)
      return error(
          Errc::value, where,
          fmt::format("no capacity for the cable {}--{}", out_.wan.sites[a], out_.wan.sites[b]),
          "state it in the file, or pass --capacity \"100 Gbps\"");
    if (!(*gbps >= 1e-9 && *gbps <= 1e9))
      return error(Errc::value, where, fmt::format("a capacity of {} Gbit/s", *gbps),
                   "use 1 bit/s to 10^18 bit/s");
    out_.wan.cables.push_back({a, b, *gbps, std::move(group)});
  }
  // Of the last cable.
  void set_unavailability(double share) {
    if (!out_.wan.cables.empty()) out_.wan.cables.back().unavailability = share;
  }
  void add_demand(const Demand& demand) { out_.demands.push_back(demand); }

  Result<WanFile> finish(const std::string& file) && {
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    if (out_.wan.cables.empty())
      return fail(Errc::parse, {file, 1, 1}, "no links", "pass a topology with at least one link");
    return std::move(out_);
  }

 private:
  std::uint32_t sites_u32() const { return static_cast<std::uint32_t>(out_.wan.sites.size()); }

  const WanOptions& options_;
  Rng draw_;
  WanFile out_;
  std::map<std::string, std::uint32_t, std::less<>> by_id_, names_;
  Errors errors_;
};

Result<WanFile> read_links_csv(std::string_view text, const std::string& file, bool is_zoo,
                               const WanOptions& options) {
  CsvReader csv(text, file);
  const std::vector<std::string> zoo{"kind", "a", "b"}, zoo_more{"c", "d"};
  const std::vector<std::string> plain{"src", "dst"},
      plain_more{"capacity", "capacity_mbps", "group", "unavailability"};
  WEFT_TRY_STATUS(is_zoo ? csv.header(zoo, zoo_more) : csv.header(plain, plain_more));
  WanBuilder out(options);
  while (csv.next()) {
    const Token first = csv.cell(0), second = csv.cell(1), third = csv.cell(2);
    if (is_zoo && first.text == "node") {
      out.add_site(std::string(second.text), std::string(third.text), second.where);
      out.set_place(csv.cell(3), csv.cell(4));
    } else if (is_zoo && first.text == "link") {
      const auto a = out.site(second.text, second.where), b = out.site(third.text, third.where);
      if (a && b) out.add_cable(*a, *b, std::nullopt, {}, first.where);
    } else if (is_zoo) {
      out.error(Errc::parse, first.where, fmt::format("{} is not a kind of row", quote(first.text)),
                "write node or link");
    } else if (first.text.empty() || second.text.empty()) {
      out.error(Errc::parse, first.where, "a link without src or dst", "name both sites");
    } else {
      std::optional<double> gbps;
      if (const Token mbps = csv.cell(3); !mbps.text.empty()) {
        const auto value = parse_number(mbps);
        value ? static_cast<void>(gbps = *value * 1e-3) : out.error(value.error());
      } else if (!third.text.empty()) {
        const auto value = parse_rate(third);
        if (!value) out.error(value.error());
        gbps = value ? static_cast<double>(value->bps) * 1e-9 : 1;
      }
      const std::uint32_t a = out.site_or_new(first.text, first.where);
      const std::uint32_t b = out.site_or_new(second.text, second.where);
      out.add_cable(a, b, gbps, std::string(csv.cell(4).text), first.where);
      if (const Token down = csv.cell(5); !trim(down.text).empty()) {
        const auto share = parse_share(down);
        share ? out.set_unavailability(*share) : out.error(share.error());
      }
    }
  }
  if (csv.error() != nullptr) out.error(*csv.error());
  return std::move(out).finish(file);
}

class XmlWan {
 public:
  XmlWan(std::string_view text, const std::string& file, const WanOptions& options)
      : file_(file), lines_(text, file), out_(options) {}

  Result<WanFile> read(std::string_view text) {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text.data(), text.size());
    if (!parsed)
      return fail(Errc::parse, lines_.at(parsed.offset),
                  fmt::format("not valid XML: {}", parsed.description()),
                  "check tags and quotes there");
    if (const pugi::xml_node graph = document.child("graphml").child("graph"); graph) {
      read_graphml(document.child("graphml"), graph);
    } else if (const pugi::xml_node network = document.child("network"); network) {
      read_sndlib(network);
    } else {
      return fail(Errc::parse, {file_, 1, 1}, "neither GraphML nor SNDlib's XML",
                  "pass a file with <graphml><graph> or <network>");
    }
    return std::move(out_).finish(file_);
  }

 private:
  Where at(const pugi::xml_node& node) const { return lines_.at(node.offset_debug()); }

  void read_graphml(const pugi::xml_node& root, const pugi::xml_node& graph) {
    std::map<std::string, std::string, std::less<>> key_name;
    for (const pugi::xml_node key : root.children("key"))
      key_name[key.attribute("id").value()] = lower_case(key.attribute("attr.name").value());
    const auto data = [&](const pugi::xml_node& of, std::string_view name) -> pugi::xml_node {
      for (const pugi::xml_node one : of.children("data"))
        if (const auto it = key_name.find(std::string_view(one.attribute("key").value()));
            it != key_name.end() && it->second == name)
          return one;
      return {};
    };
    for (const pugi::xml_node node : graph.children("node")) {
      const std::string id = node.attribute("id").value();
      const std::string label(trim(data(node, "label").child_value()));
      if (id.empty()) {
        out_.error(Errc::parse, at(node), "<node> has no id", "give each node an id");
        continue;
      }
      out_.add_site(id, label.empty() ? id : label, at(node));
      set_place(data(node, "longitude"), data(node, "latitude"));
    }
    for (const pugi::xml_node edge : graph.children("edge")) {
      const auto a = out_.site(edge.attribute("source").value(), at(edge));
      const auto b = out_.site(edge.attribute("target").value(), at(edge));
      if (!a || !b) continue;
      std::optional<double> gbps;
      for (const std::string_view name : {"rate", "capacity", "linkspeedraw"}) {
        const pugi::xml_node found = data(edge, name);
        if (!found || gbps) continue;
        gbps = rate_of({trim(found.child_value()), at(found)}, name == "linkspeedraw" ? 1e-9 : 0);
      }
      out_.add_cable(*a, *b, gbps, std::string(trim(data(edge, "group").child_value())), at(edge));
    }
  }

  void set_place(const pugi::xml_node& lon, const pugi::xml_node& lat) {
    if (lon && lat) out_.set_place({lon.child_value(), at(lon)}, {lat.child_value(), at(lat)});
  }

  // A rate with a unit, or a number in `unit` Gbit/s where that is not 0.
  double rate_of(const Token& token, double unit) {
    if (unit > 0) {
      const auto value = parse_number(token);
      if (!value) out_.error(value.error());
      return value ? *value * unit : 1;
    }
    const auto value = parse_rate(token);
    if (!value) out_.error(value.error());
    return value ? static_cast<double>(value->bps) * 1e-9 : 1;
  }

  void read_sndlib(const pugi::xml_node& network) {
    const pugi::xml_node unit_node = network.child("meta").child("unit");
    const std::string_view unit = trim(unit_node.child_value());
    double gbps = 1e-3;
    if (unit == "GBITPERSEC")
      gbps = 1;
    else if (unit == "KBITPERSEC")
      gbps = 1e-6;
    else if (!unit.empty() && unit != "MBITPERSEC")
      out_.error(Errc::unsupported, at(unit_node), fmt::format("unit {}", quote(unit)),
                 "use KBITPERSEC, MBITPERSEC or GBITPERSEC");
    const pugi::xml_node structure = network.child("networkStructure");
    for (const pugi::xml_node node : structure.child("nodes").children("node")) {
      out_.add_site(node.attribute("id").value(), node.attribute("id").value(), at(node));
      set_place(node.child("coordinates").child("x"), node.child("coordinates").child("y"));
    }
    for (const pugi::xml_node link : structure.child("links").children("link")) {
      const auto ends = ends_of(link);
      std::optional<double> capacity;
      if (const pugi::xml_node installed = link.child("preInstalledModule").child("capacity"))
        capacity = rate_of({trim(installed.child_value()), at(installed)}, gbps);
      if (capacity.value_or(0) == 0)
        for (const pugi::xml_node one : link.child("additionalModules").children("addModule"))
          capacity = std::max(capacity.value_or(0),
                              rate_of({trim(one.child("capacity").child_value()), at(one)}, gbps));
      if (ends) out_.add_cable(ends->first, ends->second, capacity, {}, at(link));
    }
    for (const pugi::xml_node demand : network.child("demands").children("demand")) {
      const auto ends = ends_of(demand);
      const pugi::xml_node value = demand.child("demandValue");
      const double rate = rate_of({trim(value.child_value()), at(value ? value : demand)}, gbps);
      if (!ends || rate == 0) continue;
      if (rate < 0 || ends->first == ends->second)
        out_.error(Errc::value, at(demand), "a demand below 0, or to its own site", "remove it");
      out_.add_demand({ends->first, ends->second, rate, class_count - 1});
    }
  }
  std::optional<std::pair<std::uint32_t, std::uint32_t>> ends_of(const pugi::xml_node& node) {
    const auto a = out_.site(trim(node.child("source").child_value()), at(node));
    const auto b = out_.site(trim(node.child("target").child_value()), at(node));
    if (!a || !b) return std::nullopt;
    return std::pair(*a, *b);
  }

  const std::string& file_;
  const LineIndex lines_;
  WanBuilder out_;
};

// The first line that holds anything, without a byte order mark.
std::string_view first_line(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view content = trim(line);
    if (!content.empty() && !content.starts_with('#')) return content;
  }
  return {};
}

}  // namespace

Result<WanFile> read_wan(std::string_view text, const std::string& file,
                         const WanOptions& options) {
  WEFT_TRY_STATUS(check_text_size(text, file, text_bytes_max, "split the network"));
  const std::string_view first = first_line(text);
  if (first.starts_with('<')) return XmlWan(text, file, options).read(text);
  return read_links_csv(text, file, first.starts_with("kind,"), options);
}

Result<double> parse_share(const Token& token) {
  WEFT_TRY(const double out, parse_fraction(token));
  if (out >= 0 && out <= 1) return out;
  return fail(Errc::value, token.where,
              fmt::format("{} is not a valid share of the time", quote(token.text)),
              "write e.g. 99.9 %, or 0.999");
}

Result<std::string> read_text(const std::string& path) {
  WEFT_TRY(std::string text, read_file(path));
  if (!text.starts_with("\x1f\x8b")) return text;
  return gunzip(text, path);
}

Result<WanFile> load_wan(const std::string& path, const WanOptions& options) {
  WEFT_TRY(const std::string text, read_text(path));
  return read_wan(text, path, options);
}

Status read_places(std::string_view text, const std::string& file, Wan& wan) {
  CsvReader csv(text, file);
  const std::vector<std::string> wanted{"id", "lon", "lat"};
  WEFT_TRY_STATUS(csv.header(wanted, {}));
  const SiteNames sites(wan);
  wan.places.assign(wan.sites.size(), {});
  Errors errors;
  while (csv.next() && errors.size() < errors_max) {
    const auto site = sites.find(csv.cell(0).text, csv.cell(0).where);
    const auto lon = parse_number(csv.cell(1)), lat = parse_number(csv.cell(2));
    if (site && lon && lat)
      wan.places[*site] = {.lon = *lon, .lat = *lat};
    else
      errors.push_back(!site ? site.error() : !lon ? lon.error() : lat.error());
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

std::string sites_json(const Wan& wan) {
  JsonList out;
  for (std::size_t i = 0; i < wan.sites.size(); ++i) {
    std::optional<double> lon, lat;
    if (i < wan.places.size() && wan.places[i]) {
      lon = wan.places[i]->lon;
      lat = wan.places[i]->lat;
    }
    out.add(JsonObject().add("name", wan.sites[i]).add("lon", lon).add("lat", lat));
  }
  return out.text();
}

SiteNames::SiteNames(const Wan& wan) : wan_(wan) {
  for (std::uint32_t i = 0; i < wan.sites.size(); ++i) by_name_.emplace(wan.sites[i], i);
}

Result<std::uint32_t> SiteNames::find(std::string_view name, const Where& where) const {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second;
  return fail(Errc::unknown, where,
              fmt::format("no site {}{}", quote(name),
                          wan_.sites.size() < 2000 ? did_you_mean(name, wan_.sites) : ""),
              "use a site of the topology");
}

namespace {

// Of demands, one a row, in any order of columns.
bool has_rate_column(std::string_view head) {
  return std::ranges::any_of(split(head, ','),
                             [](std::string_view cell) { return trim(cell) == "rate"; });
}

}  // namespace

bool is_series(std::string_view text) {
  const std::string_view head = first_line(text);
  return head.starts_with("time,") && !has_rate_column(head);
}

Result<Series> read_series(std::string_view text, const std::string& file, const Wan& wan) {
  if (has_rate_column(first_line(text))) return read_demand_series(text, file, wan);
  std::vector<std::string> heads;
  for (const std::string_view cell : split(first_line(text), ',')) heads.emplace_back(trim(cell));
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(heads, {}));
  const SiteNames names(wan);
  Series out;
  for (std::size_t c = 1; c < heads.size(); ++c) {
    const std::size_t arrow = heads[c].find('>');
    if (heads.front() != "time" || arrow == std::string::npos)
      return fail(Errc::parse, csv.where(), fmt::format("{} is not a pair", quote(heads[c])),
                  "name the columns time and SRC>DST");
    WEFT_TRY(const std::uint32_t from, names.find(heads[c].substr(0, arrow), csv.where()));
    WEFT_TRY(const std::uint32_t to, names.find(heads[c].substr(arrow + 1), csv.where()));
    out.pairs.push_back({from, to});
  }
  Errors errors;
  while (csv.next() && errors.size() < errors_max) {
    out.times.emplace_back(csv.cell(0).text);
    for (std::size_t c = 1; c < heads.size(); ++c) {
      const auto value = parse_number(csv.cell(c));
      if (!value)
        errors.push_back(value.error());
      else if (*value < 0 || *value > 1e15)
        errors.push_back({Errc::value,
                          csv.cell(c).where,
                          "a rate below 0 or above 10^15 Mbit/s",
                          "write Mbit/s",
                          {}});
      out.mbps.push_back(value ? static_cast<float>(*value) : 0);
    }
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.times.empty() || out.pairs.empty())
    return fail(Errc::parse, {file, 1, 1}, "no matrices", "pass rows of time and rates");
  return out;
}

Result<std::vector<Demand>> demands_at(const Series& series, const std::string& time) {
  std::size_t best = series.times.size();
  double most = -1;
  for (std::size_t i = 0; i < series.times.size(); ++i) {
    if (!time.empty() && series.times[i] != time) continue;
    double sum = 0;
    for (std::size_t p = 0; p < series.pairs.size(); ++p)
      sum += static_cast<double>(series.row(i)[p]);
    if (sum > most) best = i;
    most = std::max(most, sum);
  }
  if (best == series.times.size())
    return fail(Errc::unknown, {"--at", 0, 0}, fmt::format("no interval {}", quote(time)),
                fmt::format("use {} to {}", series.times.front(), series.times.back()));
  std::vector<Demand> out;
  for (std::size_t p = 0; p < series.pairs.size(); ++p)
    if (const float mbps = series.row(best)[p];
        mbps > 0 && series.pairs[p].from != series.pairs[p].to)
      out.push_back({series.pairs[p].from, series.pairs[p].to, static_cast<double>(mbps) * 1e-3,
                     class_count - 1});
  return out;
}

std::vector<Demand> gravity_demands(const Wan& wan, const Gravity& options) {
  const Rng rng(options.seed);
  Rng masses = rng.stream("mass"), pairs = rng.stream("pair");
  std::vector<double> mass;
  for (std::size_t i = 0; i < wan.sites.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - masses.uniform()));  // Box, Muller, 1958
    mass.push_back(std::exp(radius * std::cos(2 * M_PI * masses.uniform())));
  }
  PathFinder finder(wan);
  std::vector<Demand> out;
  double volume = 0, capacity = 0;
  for (std::uint32_t a = 0; a < wan.sites.size(); ++a) {
    const std::vector<std::uint32_t> hops = finder.hops_from(a);
    for (std::uint32_t b = 0; b < wan.sites.size(); ++b) {
      if (a == b || (options.fraction < 1 && pairs.uniform() >= options.fraction)) continue;
      if (hops[b] == no_path) continue;
      volume += mass[a] * mass[b] * hops[b];
      out.push_back({a, b, mass[a] * mass[b], class_count - 1});
    }
  }
  for (std::size_t l = 0; l < wan.link_count(); ++l) capacity += wan.gbps(l);
  for (Demand& d : out) d.gbps *= options.load * capacity / volume;
  if (!options.by_class) return out;
  std::vector<Demand> split;
  for (const Demand& d : out)
    for (std::uint8_t c = 0; c < class_count; ++c)
      split.push_back({d.from, d.to, d.gbps * 0.1 * (c + 1), c});
  return split;
}

}  // namespace weft::plan::backbone
