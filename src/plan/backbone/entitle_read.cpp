#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "plan/backbone/entitle.hpp"

namespace weft::plan::backbone {
namespace {

constexpr std::size_t contract_count_max = 20'000;

class ContractReader {
 public:
  explicit ContractReader(const Wan& wan) : wan_(wan), names_(wan) {}

  void read(const CsvReader& csv) {
    const std::size_t before = errors_.size();
    Contract out{.name = std::string(trim(csv.cell(0).text)), .peers = {}};
    if (out.name.empty())
      keep(Errc::parse, csv.cell(0).where, "a contract without name", "name it");
    if (!names_seen_.insert(out.name).second)
      keep(Errc::value, csv.cell(0).where, fmt::format("{} is listed twice", quote(out.name)),
           "give every contract a name of its own");
    const std::vector<std::uint32_t> from = sites(csv.cell(1)), to = sites(csv.cell(2));
    if (from.size() > 1 && to.size() > 1)
      keep(Errc::unsupported, csv.cell(1).where, "several sites on both sides",
           "write a hose out of each site, and one into each");
    out.into = from.size() > 1;
    out.is_hose = from.size() > 1 || to.size() > 1;
    if (errors_.size() == before) set_sites(csv, out, from, to);
    if (const auto rate = take(parse_rate(csv.cell(3))))
      out.gbps = static_cast<double>(rate->bps) * 1e-9;
    out.availability = availability(csv.cell(4));
    out.priority = priority(csv.cell(5));
    if (errors_.size() == before && out.gbps <= 0)
      keep(Errc::value, csv.cell(3).where, "a rate of 0", "leave the contract out");
    if (errors_.size() == before) contracts_.push_back(std::move(out));
  }

  bool is_full() const {
    return errors_.size() >= errors_max || contracts_.size() > contract_count_max;
  }
  void keep(Error error) { errors_.push_back(std::move(error)); }
  Result<std::vector<Contract>> finish(const std::string& file) && {
    if (contracts_.size() > contract_count_max)
      keep(Errc::unsupported, {file, 0, 0},
           fmt::format("more than {} contracts", contract_count_max), "read them in parts");
    if (errors_.empty() && contracts_.empty())
      keep(Errc::value, {file, 0, 0}, "no contracts", "list at least one");
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(contracts_);
  }

 private:
  void keep(Errc code, const Where& where, std::string what, std::string hint) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  template <class T>
  std::optional<T> take(Result<T> value) {
    if (value) return *std::move(value);
    errors_.push_back(value.error());
    return std::nullopt;
  }

  // "*": all sites.
  std::vector<std::uint32_t> sites(const Token& cell) {
    std::vector<std::uint32_t> out;
    if (trim(cell.text) == "*") {
      out.resize(wan_.sites.size());
      std::iota(out.begin(), out.end(), 0);
      return out;
    }
    for (const std::string_view name : split(cell.text, ';'))
      if (const auto site = take(names_.find(trim(name), cell.where))) out.push_back(*site);
    std::ranges::sort(out);
    if (std::ranges::adjacent_find(out) != out.end())
      keep(Errc::value, cell.where, "a site twice", "name every site once");
    return out;
  }
  void set_sites(const CsvReader& csv, Contract& out, const std::vector<std::uint32_t>& from,
                 const std::vector<std::uint32_t>& to) {
    out.site = out.into ? to.front() : from.front();
    out.peers = out.into ? from : to;
    const Token& many = csv.cell(out.into ? 1 : 2);
    if (trim(many.text) == "*")
      std::erase(out.peers, out.site);
    else if (std::ranges::find(out.peers, out.site) != out.peers.end())
      keep(Errc::value, many.where, "a contract from a site to itself", "name other sites");
    if (out.peers.empty())
      keep(Errc::value, many.where, "there are no other sites", "use a larger topology");
  }
  double availability(const Token& cell) {
    const auto out = take(parse_share(cell));
    if (out && *out <= 0)
      keep(Errc::value, cell.where, "an availability of 0 promises nothing", "write e.g. 99.9 %");
    return out.value_or(0);
  }
  std::uint8_t priority(const Token& cell) {
    if (trim(cell.text).empty()) return class_count - 1;
    const auto number = take(parse_count(cell));
    if (!number) return 0;
    if (*number < 1 || *number > static_cast<std::int64_t>(class_count)) {
      keep(Errc::value, cell.where, fmt::format("class {} does not exist", *number),
           "write 1 (promised first) to 4");
      return 0;
    }
    return static_cast<std::uint8_t>(*number - 1);
  }

  const Wan& wan_;
  SiteNames names_;
  std::vector<Contract> contracts_;
  std::set<std::string> names_seen_;
  Errors errors_;
};

}  // namespace

Result<std::vector<Contract>> read_contracts(std::string_view text, const std::string& file,
                                             const Wan& wan) {
  CsvReader csv(text, file);
  const std::vector<std::string> needed{"name", "src", "dst", "rate", "availability"};
  WEFT_TRY_STATUS(csv.header(needed, std::vector<std::string>{"class"}));
  ContractReader reader(wan);
  while (!reader.is_full() && csv.next()) reader.read(csv);
  if (csv.error() != nullptr) reader.keep(*csv.error());
  return std::move(reader).finish(file);
}

}  // namespace weft::plan::backbone
