#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "plan/backbone/bulk.hpp"

namespace weft::plan::backbone {
namespace {

constexpr std::size_t transfer_count_max = 100'000;

class TransferReader {
 public:
  TransferReader(const Wan& wan, const Slots& slots) : names_(wan), slots_(slots) {}

  void read(const CsvReader& csv) {
    const std::size_t before = errors_.size();
    Transfer out{.id = std::string(csv.cell(0).text), .to = {}, .pauses = {}};
    if (out.id.empty())
      keep(Errc::parse, csv.cell(0).where, "a transfer without id", "name it");
    else if (!ids_.insert(out.id).second)
      keep(Errc::value, csv.cell(0).where, fmt::format("duplicate transfer {}", quote(out.id)),
           "give each transfer an id of its own");
    const auto from = take(names_.find(csv.cell(1).text, csv.cell(1).where));
    out.from = from.value_or(0);
    for (const std::string_view name : split(csv.cell(2).text, ';'))
      if (const auto to = take(names_.find(trim(name), csv.cell(2).where))) out.to.push_back(*to);
    std::ranges::sort(out.to);
    if (std::ranges::adjacent_find(out.to) != out.to.end() ||
        (from && std::ranges::binary_search(out.to, *from)))
      keep(Errc::value, csv.cell(2).where, "a transfer to its own site, or twice to one",
           "name every other site once");
    if (const auto size = take(parse_bytes(csv.cell(3))))
      out.gbit = static_cast<double>(size->count) * 8e-9;
    out.release = slot_of(csv.cell(4), 0, true);
    out.deadline = slot_of(csv.cell(5), slots_.count, false);
    if (!csv.cell(6).text.empty())
      if (const auto rate = take(parse_rate(csv.cell(6))))
        out.gbps_max = static_cast<double>(rate->bps) * 1e-9;
    read_pauses(csv.cell(7), out);
    if (errors_.size() == before) check(out, csv.where());
    if (errors_.size() == before) transfers_.push_back(std::move(out));
  }

  bool is_full() const {
    return errors_.size() >= errors_max || transfers_.size() > transfer_count_max;
  }
  void keep(Error error) { errors_.push_back(std::move(error)); }
  Result<std::vector<Transfer>> finish() && {
    if (transfers_.size() > transfer_count_max)
      keep(Errc::unsupported, {}, fmt::format("more than {} transfers", transfer_count_max),
           "plan them in parts");
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(transfers_);
  }

 private:
  void keep(Errc code, const Where& where, std::string what, std::string hint) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  template <class T>
  std::optional<T> take(Result<T> result) {
    if (result) return std::move(*result);
    keep(std::move(result.error()));
    return std::nullopt;
  }

  // A time of day as a slot; an empty cell is `otherwise`.
  std::uint32_t slot_of(const Token& token, std::uint32_t otherwise, bool is_begin) {
    if (token.text.empty()) return otherwise;
    const auto span = take(parse_duration(token));
    if (!span) return otherwise;
    const double slot = span->seconds() / slots_.seconds;
    const double whole = is_begin ? std::ceil(slot - 1e-9) : std::floor(slot + 1e-9);
    if (whole < 0 || whole > slots_.count)
      keep(Errc::value, token.where, fmt::format("{} is not within the day", quote(token.text)),
           fmt::format("use 0 to {} min", slots_.count * slots_.seconds / 60));
    return static_cast<std::uint32_t>(std::clamp(whole, 0.0, double(slots_.count)));
  }

  void read_pauses(const Token& token, Transfer& out) {
    if (token.text.empty()) return;
    for (const std::string_view pause : split(token.text, ';')) {
      const std::size_t dash = pause.find('-');
      if (dash == std::string_view::npos) {
        keep(Errc::parse, token.where, fmt::format("{} is not a pause", quote(pause)),
             "write e.g. \"2 h-3 h\"");
        continue;
      }
      // Every slot that the pause touches.
      const std::uint32_t from = slot_of({pause.substr(0, dash), token.where}, 0, false);
      const std::uint32_t to = slot_of({pause.substr(dash + 1), token.where}, 0, true);
      if (from >= to)
        keep(Errc::value, token.where,
             fmt::format("the pause {} ends before it begins", quote(pause)),
             "write e.g. \"2 h-3 h\"");
      out.pauses.emplace_back(from, to);
    }
  }

  void check(const Transfer& t, const Where& where) {
    std::uint32_t open = 0;
    for (std::uint32_t s = t.release; s < t.deadline; ++s) open += t.may_send(s) ? 1 : 0;
    const double most = t.gbps_max * open * slots_.seconds;
    if (open == 0)
      keep(Errc::infeasible, where,
           fmt::format("transfer {} has no whole slot to be sent in", quote(t.id)),
           "move its deadline, release or pauses");
    else if (t.gbit > most * (1 + 1e-12))
      keep(Errc::infeasible, where,
           fmt::format("transfer {} can send {:.4g} of {:.4g} Gbit until its deadline", quote(t.id),
                       most, t.gbit),
           "raise rate_max or move its deadline, release or pauses");
  }

  const SiteNames names_;
  const Slots slots_;
  std::vector<Transfer> transfers_;
  std::set<std::string> ids_;
  Errors errors_;
};

std::vector<std::size_t> rows_of(const Series& series, const std::string& day) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < series.times.size(); ++i)
    if (series.times[i].starts_with(day)) out.push_back(i);
  return out;
}

}  // namespace

bool Transfer::may_send(std::uint32_t slot) const {
  if (slot < release || slot >= deadline) return false;
  return std::ranges::none_of(
      pauses, [&](const auto& pause) { return slot >= pause.first && slot < pause.second; });
}

Result<std::vector<Transfer>> read_transfers(std::string_view text, const std::string& file,
                                             const Wan& wan, const Slots& slots) {
  CsvReader csv(text, file);
  const std::vector<std::string> required{"id", "src", "dst", "size"};
  const std::vector<std::string> optional{"release", "deadline", "rate_max", "pause"};
  WEFT_TRY_STATUS(csv.header(required, optional));
  TransferReader reader(wan, slots);
  while (!reader.is_full() && csv.next()) reader.read(csv);
  if (csv.error() != nullptr) reader.keep(*csv.error());
  return std::move(reader).finish();
}

Result<Loads> background(const Series& series, const std::string& day, const Wan& wan,
                         const Slots& slots) {
  const std::vector<std::size_t> rows = rows_of(series, day);
  if (rows.empty())
    return fail(
        Errc::unknown, {"--day", 0, 0}, fmt::format("no interval begins with {}", quote(day)),
        fmt::format("the matrices go from {} to {}", series.times.front(), series.times.back()));
  if (rows.size() % slots.count != 0)
    return fail(Errc::value, {"--slots", 0, 0},
                fmt::format("{} intervals do not divide into {} slots", rows.size(), slots.count),
                "choose --slots and --day so that each slot has the same number of intervals");
  const std::size_t each = rows.size() / slots.count;
  std::vector<Demand> pairs;
  for (const Series::Pair& pair : series.pairs) pairs.push_back({pair.from, pair.to});
  const PathSet paths = find_paths(wan, pairs, 1);
  Loads out(wan.link_count() * slots.count, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      if (paths.first_path[p] == paths.first_path[p + 1]) continue;
      const double gbps =
          static_cast<double>(series.row(rows[i])[p]) * 1e-3 / static_cast<double>(each);
      for (const std::uint32_t l : paths.path(paths.first_path[p]))
        out[std::size_t{l} * slots.count + i / each] += gbps;
    }
  return out;
}

std::vector<std::string> days_before(const Series& series, const std::string& day,
                                     const Slots& slots) {
  std::vector<std::string> out;
  for (const std::string& time : series.times) {
    const std::string prefix = time.substr(0, day.size());
    if (prefix == day) break;
    if (out.empty() || out.back() != prefix) out.push_back(prefix);
  }
  const std::size_t whole = rows_of(series, day).size();
  std::erase_if(out, [&](const std::string& one) {
    const auto rows = rows_of(series, one);
    return rows.size() != whole || rows.size() % slots.count != 0;
  });
  return out;
}

}  // namespace weft::plan::backbone
