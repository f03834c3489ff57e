#include "plan/design/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace weft::plan {
namespace {

constexpr double money_max = 1e12, watts_max = 1e9, metres_max = 1e6;
constexpr std::int64_t ports_max = 1'000'000;

Rate positive_rate(Reader& reader) {
  const Rate rate = reader.rate("rate", std::nullopt);
  if (reader.has("rate") && rate.bps <= 0)
    reader.error(Errc::value, reader.where("rate"), "\"rate\" must be above 0 bps");
  return rate;
}

// One entry of a list for each map below `key`; the key may be missing.
template <class Entry, class Read>
void read_list(Reader& table, std::string_view key, Errors& errors, std::vector<Entry>& out,
               Read read) {
  const Config* list = table.child(key);
  if (list == nullptr) return;
  if (list->kind != Config::Kind::list)
    return table.error(Errc::value, list->where, fmt::format("\"{}\" must be a list", key));
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    Reader reader(list->items[i], fmt::format("{}[{}]", key, i), errors);
    Entry entry;
    entry.rate = positive_rate(reader);
    entry.price = reader.number("price", std::nullopt, 0, money_max);
    entry.watts = reader.number("watts", std::nullopt, 0, watts_max);
    read(reader, entry);
    reader.finish();
    out.push_back(std::move(entry));
  }
}

void read_floor(Reader& table, Errors& errors, Prices& out) {
  const Config none;
  const Config* floor = table.child("floor");
  Reader reader(floor != nullptr ? *floor : none, "floor", errors);
  out.rack_hosts = reader.count("rack_hosts", 4, 1, ports_max);
  out.row_hosts = reader.count("row_hosts", 64, 1, ports_max);
  out.metres = {reader.number("in_rack_m", 2, 0, metres_max),
                reader.number("row_m", 15, 0, metres_max),
                reader.number("hall_m", 80, 0, metres_max)};
  if (out.row_hosts < out.rack_hosts)
    reader.error(Errc::value, reader.where("row_hosts"),
                 fmt::format("a row of {} hosts is smaller than a rack of {}", out.row_hosts,
                             out.rack_hosts));
  reader.finish();
}

// The best of those that `fits`, compared by `order`.
template <class Entry, class Fits, class Order>
const Entry* best(const std::vector<Entry>& all, Fits fits, Order order) {
  const Entry* found = nullptr;
  for (const Entry& entry : all)
    if (fits(entry) && (found == nullptr || order(entry) < order(*found))) found = &entry;
  return found;
}

}  // namespace

std::string_view to_text(Span span) {
  constexpr std::array<std::string_view, span_count> names{"in rack", "row", "hall"};
  return names[static_cast<std::size_t>(span)];
}

std::string Prices::Switch::text() const { return fmt::format("{} x {}", ports, to_text(rate)); }

bool Prices::Switch::fits(const std::vector<std::pair<Rate, std::int64_t>>& cables) const {
  std::int64_t used = 0;
  for (const auto& [each, count] : cables) {
    if (each > rate) return false;
    const std::int64_t on_port = std::min(breakout, rate.bps / each.bps);
    used += (count + on_port - 1) / on_port;
  }
  return used <= ports;
}

double Prices::Medium::link_price(double metres) const {
  return is_optics ? 2 * price + metres * fibre_price_per_m : price;
}

Span Prices::span(std::int64_t hosts) const {
  if (hosts == 0 || hosts > row_hosts) return Span::hall;
  return hosts <= rack_hosts ? Span::in_rack : Span::row;
}

Prices::Bundle Prices::bundle(Rate link, double metres) const {
  Rate fastest;
  for (const Medium& m : media)
    if (m.reach_m >= metres) fastest = std::max(fastest, m.rate);
  if (fastest.bps == 0 || link <= fastest || (link.bps - 1) / fastest.bps >= bundle_max)
    return {1, link};
  const std::int64_t cables = (link.bps - 1) / fastest.bps + 1;
  return {cables, Rate{(link.bps - 1) / cables + 1}};
}

const Prices::Switch* Prices::find_switch(
    const std::vector<std::pair<Rate, std::int64_t>>& cables) const {
  return best(
      switches, [&](const Switch& s) { return s.fits(cables); },
      [](const Switch& s) { return std::tuple(s.price, s.watts); });
}

const Prices::Medium* Prices::find_medium(Rate rate, double metres) const {
  return best(
      media, [&](const Medium& m) { return m.rate >= rate && m.reach_m >= metres; },
      [&](const Medium& m) { return std::tuple(m.rate, m.link_price(metres), m.link_watts()); });
}

const Prices::Nic* Prices::find_nic(Rate rate) const {
  return best(
      nics, [&](const Nic& n) { return n.rate >= rate; },
      [](const Nic& n) { return std::tuple(n.rate, n.price, n.watts); });
}

Result<Prices> read_prices(const Config& config) {
  Errors errors;
  Prices out;
  Reader table(config, "prices", errors);
  out.file = config.where.file;
  out.currency = table.text("currency", "USD");
  if (out.currency.empty())
    table.error(Errc::value, table.where("currency"), "\"currency\" is empty");
  read_floor(table, errors, out);
  read_list(table, "switches", errors, out.switches, [](Reader& reader, Prices::Switch& s) {
    s.ports = reader.count("ports", std::nullopt, 1, ports_max);
    s.breakout = reader.count("breakout", 1, 1, ports_max);
  });
  const auto read_medium = [](Reader& reader, Prices::Medium& m) {
    m.type = reader.text("type", std::nullopt);
    m.reach_m = reader.number("reach_m", std::nullopt, 0, metres_max);
  };
  read_list(table, "cables", errors, out.media, read_medium);
  read_list(table, "optics", errors, out.media, [&](Reader& reader, Prices::Medium& m) {
    read_medium(reader, m);
    m.is_optics = true;
    m.fibre_price_per_m = reader.number("fibre_price_per_m", 0, 0, money_max);
  });
  read_list(table, "nics", errors, out.nics, [](Reader&, Prices::Nic&) {});
  table.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<Prices> load_prices(const std::string& path) {
  WEFT_TRY(Config config, load_yaml(path));
  config.where.file = path;
  return read_prices(config);
}

}  // namespace weft::plan
