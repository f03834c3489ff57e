#include "plan/design/plan_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "base/fields.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::plan {

template <class Archive, Of<Candidate> T>
void fields(Archive& ar, T& c) {
  ar("generator", c.generator);
  ar("tiers", c.tiers);
  ar("planes", c.planes);
  ar("nics", c.nics);
  ar("switches", c.switches);
  ar("links", c.links);
  ar("oversubscription", c.oversubscription);
  ar("fabric", c.yaml);
  if constexpr (requires { ar.empty(); })
    if (c.bill) ar("bill", JsonText{to_json(*c.bill)});
}

namespace {

constexpr std::int64_t radix_max = 4096, planes_max = 8;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The fewest ports up for so many down; a ratio such as 0.1 * 3 may stand a rounding above a whole.
std::int64_t ports_up(std::int64_t down, double oversubscription) {
  return std::llround(std::ceil(static_cast<double>(down) / oversubscription - 1e-9));
}

// "400G" and "1.6T" beside what parse_rate() takes.
Result<Rate> parse_short_rate(std::string_view text, const Where& where) {
  std::string full(trim(text));
  if (full.ends_with('G') || full.ends_with('T')) full += "bps";
  WEFT_TRY(const Rate rate, parse_rate({full, where}));
  if (rate.bps <= 0) return fail(Errc::value, where, "a rate must be above 0 bps");
  return rate;
}

Result<std::int64_t> parse_count_of(std::string_view text, const Where& where,
                                    std::string_view what, std::int64_t least, std::int64_t most) {
  WEFT_TRY(const std::int64_t count, parse_count({text, where}));
  if (count < least || count > most)
    return fail(Errc::value, where, fmt::format("{} must be {} to {}", what, least, most));
  return count;
}

// "A x B"; `rate` stays where there is no "x".
Status parse_pair(std::string_view text, const Where& where, std::string_view what,
                  std::int64_t most, std::int64_t& count, Rate& rate) {
  const std::size_t at = text.find('x');
  WEFT_TRY(count, parse_count_of(text.substr(0, at), where, what, 1, most));
  if (at == std::string_view::npos) return {};
  WEFT_TRY(rate, parse_short_rate(text.substr(at + 1), where));
  return {};
}

Status parse_part(std::string_view part, const Where& where, PlanRequest& out) {
  const auto behind = [&](std::string_view word) {
    return part.starts_with(word) ? std::optional(part.substr(word.size())) : std::nullopt;
  };
  if (const auto radix = behind("radix "))
    return parse_pair(*radix, where, "the radix", radix_max, out.radix, out.port);
  if (const auto hosts = behind("hosts of ")) {
    WEFT_TRY(out.nics_per_host, parse_count_of(*hosts, where, "NICs of a host", 1, 64));
    return {};
  }
  if (const auto ratio = behind("oversubscription ")) {
    WEFT_TRY(out.oversubscription, parse_number({*ratio, where}));
    if (out.oversubscription >= 1 && out.oversubscription <= 1000) return {};
    return fail(Errc::value, where, "the oversubscription must be 1 to 1000");
  }
  if (part.empty() || !is_digit(part.front()) || part.find('x') == std::string_view::npos)
    return fail(Errc::parse, where, fmt::format("{} is not a part of a plan", quote(part)),
                "write e.g. \"4096 x 400G, radix 64, oversubscription 2, hosts of 8\"");
  return parse_pair(part, where, "the NICs", model::gpu_count_max, out.nics, out.rate);
}

// The tiers above the first, for one number of NIC ports on each first switch.
struct TwoTier {
  std::int64_t groups = 0, hosts = 0;  // racks or groups, hosts in each
  std::int64_t leaves = 0, down = 0, spines = 0, uplinks = 0;
  std::int64_t switches() const { return leaves + spines; }
  std::int64_t links() const { return leaves * (down + spines * uplinks); }
};

// The fewest switches of one plane. Each group of hosts has `leaves` first switches, with
// `nics` ports to each of its hosts; `parallel_max` cables at most between two switches.
std::optional<TwoTier> best_two_tier(const PlanRequest& r, std::int64_t radix, std::int64_t leaves,
                                     std::int64_t nics, std::int64_t parallel_max) {
  std::optional<TwoTier> best;
  for (std::int64_t hosts = 1; hosts * nics < radix; ++hosts) {
    TwoTier t{.hosts = hosts, .down = hosts * nics};
    t.groups = ceil_div(r.nics, hosts * r.nics_per_host);
    t.leaves = t.groups * leaves;
    if (t.groups * hosts * r.nics_per_host > model::gpu_count_max) continue;
    const std::int64_t up = ports_up(t.down, r.oversubscription);
    for (std::int64_t parallel = 1; parallel <= std::min({radix / t.leaves, parallel_max, up});
         ++parallel) {
      t.spines = ceil_div(up, parallel);
      t.uplinks = ceil_div(up, t.spines);
      if (t.down + t.spines * t.uplinks > radix) continue;
      if (!best ||
          std::tuple(t.switches(), t.links()) < std::tuple(best->switches(), best->links()))
        best = t;
    }
  }
  return best;
}

std::string common_keys(const PlanRequest& r, std::int64_t radix) {
  return fmt::format("gpus_per_host: {}, link: {}, radix: {}", r.nics_per_host, to_text(r.rate),
                     radix);
}

Candidate from_two_tier(const PlanRequest& r, std::string generator, std::int64_t planes,
                        const TwoTier& t) {
  Candidate out{.generator = std::move(generator), .planes = planes};
  out.nics = t.groups * t.hosts * r.nics_per_host;
  out.switches = planes * t.switches();
  out.links = planes * t.links();
  out.oversubscription = static_cast<double>(t.down) / static_cast<double>(t.spines * t.uplinks);
  return out;
}

void add_two_tiers(const PlanRequest& r, std::vector<Candidate>& out) {
  for (std::int64_t planes = 1; planes <= planes_max; planes *= 2) {
    if (r.rate.bps % planes != 0) continue;
    const std::int64_t radix = r.ports(r.rate / planes);
    const std::string keys = common_keys(r, radix);
    if (const auto t = best_two_tier(r, radix, 1, r.nics_per_host, radix)) {
      Candidate c = from_two_tier(r, planes == 1 ? "ai_zone" : "multi_plane", planes, *t);
      c.yaml = fmt::format(
          "{{generator: {}, {}racks: {}, hosts_per_rack: {}, spines: {}, uplinks_per_spine: {}, "
          "{}}}",
          c.generator, planes == 1 ? "" : fmt::format("planes: {}, ", planes), t->groups, t->hosts,
          t->spines, t->uplinks, keys);
      out.push_back(std::move(c));
    }
    const std::int64_t parallel_max = planes == 1 ? radix : 1;  // hpn has one cable to each agg
    const auto t = best_two_tier(r, radix, r.nics_per_host, 1, parallel_max);
    if (!t) continue;
    Candidate c = from_two_tier(r, planes == 1 ? "rail_optimized" : "hpn", planes, *t);
    c.yaml = planes == 1
                 ? fmt::format(
                       "{{generator: rail_optimized, groups: {}, hosts_per_group: {}, "
                       "spines: {}, uplinks_per_spine: {}, {}}}",
                       t->groups, t->hosts, t->spines, t->uplinks, keys)
                 : fmt::format(
                       "{{generator: hpn, planes: {}, segments: {}, hosts_per_segment: {}, "
                       "aggs: {}, uplink: {}, {}}}",
                       planes, t->groups, t->hosts, t->spines, to_text(r.rate / planes), keys);
    out.push_back(std::move(c));
  }
}

void add_three_tier(const PlanRequest& r, std::vector<Candidate>& out) {
  const std::int64_t radix = r.ports(r.rate);
  std::optional<Candidate> best;
  for (std::int64_t hosts = 1; 2 * hosts * r.nics_per_host <= radix; ++hosts)
    for (std::int64_t racks = 1; racks < radix; ++racks) {
      const std::int64_t down = hosts * r.nics_per_host;
      const std::int64_t atsws = ports_up(racks, r.oversubscription);
      const std::int64_t pods = ceil_div(r.nics, racks * down);
      if (racks + atsws > radix || pods > radix || pods < 2) continue;
      Candidate c{.generator = "three_tier", .tiers = 3, .nics = pods * racks * down};
      c.switches = pods * (racks + down) + down * atsws;
      c.links = c.nics + pods * racks * down + pods * down * atsws;
      c.oversubscription = static_cast<double>(racks) / static_cast<double>(atsws);
      if (best && std::tuple(best->switches, best->links) <= std::tuple(c.switches, c.links))
        continue;
      c.yaml = fmt::format(
          "{{generator: three_tier, pods: {}, racks: {}, hosts_per_rack: {}, ctsws: {}, atsws: {}, "
          "{}}}",
          pods, racks, hosts, down, atsws, common_keys(r, radix));
      best = std::move(c);
    }
  if (best) out.push_back(*std::move(best));
}

void add_fat_tree(const PlanRequest& r, std::vector<Candidate>& out) {
  const std::int64_t radix = r.ports(r.rate), step = 2 * r.nics_per_host;
  for (std::int64_t k = step; k <= radix; k += step) {
    if (k * k * k / 4 < r.nics) continue;
    Candidate c{.generator = "fat_tree", .tiers = 3, .nics = k * k * k / 4};
    c.switches = 5 * k * k / 4;
    c.links = 3 * c.nics;
    c.yaml = fmt::format("{{generator: fat_tree, k: {}, {}}}", k, common_keys(r, radix));
    out.push_back(std::move(c));
    return;
  }
}

Result<Bill> price(const Candidate& plan, const Prices& prices) {
  WEFT_TRY(const Config section, parse_yaml(plan.yaml, plan.generator));
  WEFT_TRY(const model::Fabric fabric, model::build_fabric(section));
  return bill_of(fabric, prices);
}

}  // namespace

std::int64_t PlanRequest::ports(Rate each) const {
  if (each <= port) return radix;
  return static_cast<std::int64_t>(static_cast<double>(radix) * static_cast<double>(port.bps) /
                                   static_cast<double>(each.bps));
}

Result<PlanRequest> parse_plan(const Token& token) {
  PlanRequest out;
  Errors errors;
  std::set<std::string_view> said;  // by the word before the number
  for (const std::string_view part : split(token.text, ',')) {
    const std::string_view trimmed = trim(part);
    if (const Status read = parse_part(trimmed, token.where, out); !read)
      errors.push_back(read.error());
    else if (!said.insert(trimmed.substr(0, trimmed.find_first_of("0123456789"))).second)
      errors.push_back({Errc::value,
                        token.where,
                        fmt::format("{} is given a second time", quote(trimmed)),
                        "give each part once",
                        {}});
  }
  const auto missing = [&](std::string_view what, std::string_view example) {
    if (errors.empty())
      errors.push_back({Errc::value,
                        token.where,
                        fmt::format("a plan needs {}", what),
                        fmt::format("write e.g. \"{}\"", example),
                        {}});
  };
  if (out.nics == 0) missing("a number of NICs and their rate", "4096 x 400G, radix 64");
  if (out.radix == 0) missing("the radix of the switches", "4096 x 400G, radix 64");
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.port.bps == 0) out.port = out.rate;
  return out;
}

Result<std::vector<Candidate>> plan_fabric(const PlanRequest& request, const Prices* prices) {
  std::vector<Candidate> out;
  add_two_tiers(request, out);
  add_three_tier(request, out);
  if (request.oversubscription == 1) add_fat_tree(request, out);
  // Whole hosts, racks and pods may need more than a fabric can have.
  std::erase_if(out, [](const Candidate& c) { return c.nics > model::gpu_count_max; });
  if (out.empty())
    return fail(
        Errc::infeasible, {},
        fmt::format("no fabric of two or three tiers reaches {} NICs of {} with switches "
                    "of {} ports of {}",
                    request.nics, to_text(request.rate), request.radix, to_text(request.port)),
        "use a larger radix, a higher oversubscription or fewer NICs");
  std::ranges::stable_sort(
      out, {}, [](const Candidate& c) { return std::tuple(c.tiers, c.switches, c.links); });
  if (prices == nullptr) return out;
  for (Candidate& plan : out) {
    WEFT_TRY(plan.bill, price(plan, *prices));
  }
  return out;
}

std::string to_table(std::span<const Candidate> plans) {
  using Align = Table::Align;
  const bool priced = !plans.empty() && plans.front().bill;
  std::vector<Table::Head> heads{{"rank"},  {"generator", Align::left},
                                 {"tiers"}, {"planes"},
                                 {"NICs"},  {"switches"},
                                 {"links"}, {"down : up"}};
  if (priced)
    for (const std::string& title : {std::string("transceivers"), std::string("fibre m"),
                                     std::string("kW"), "cost " + plans.front().bill->currency})
      heads.push_back({title});
  Table table(std::move(heads));
  std::string sections;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Candidate& c = plans[i];
    std::vector<std::string> row{
        fmt::format("{}", i + 1),   c.generator,
        fmt::format("{}", c.tiers), fmt::format("{}", c.planes),
        fmt::format("{}", c.nics),  fmt::format("{}", c.switches),
        fmt::format("{}", c.links), fmt::format("{:.4g}", c.oversubscription)};
    if (c.bill) {
      row.push_back(fmt::format("{}", c.bill->transceivers));
      row.push_back(fmt::format("{:.0f}", c.bill->fibre_m));
      row.push_back(fmt::format("{:.1f}", c.bill->watts / 1000));
      row.push_back(fmt::format("{:.0f}", c.bill->price));
    }
    table.add(std::move(row));
    sections += fmt::format("\n# {}\nfabric: {}\n", i + 1, c.yaml);
  }
  return table.text() + sections;
}

std::string to_json(std::span<const Candidate> plans) {
  return JsonObject().add("plans", plans).text();
}

}  // namespace weft::plan
