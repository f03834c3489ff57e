#include "observe/colltrace/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "observe/colltrace/expected.hpp"
#include "observe/colltrace/median.hpp"
#include "observe/localise/pair_paths.hpp"

namespace weft::observe::colltrace {
namespace {

using model::LinkId;
using model::NodeId;

// What is believed before anything is seen: of jobs that somebody looks at, half are sound. Within
// a cause all parts that the job uses are alike.
constexpr std::array<double, cause_count> prior{0.5, 0.1, 0.075, 0.075, 0.05, 0.15, 0.05};

// Factors of time and rates of loss that a cause may bring, alike before they are seen.
constexpr auto factors = std::to_array<double>({1.12, 1.25, 1.45, 1.7, 2, 2.5, 3.2, 4.5, 7, 12});
constexpr auto rates =
    std::to_array<double>({1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.15, 0.5});
static_assert(factors.size() == rates.size());
using Grid = std::array<double, factors.size()>;  // sums of log likelihood ratios

// What one cause does to the edges that it touches differs, and lies between the factors.
constexpr double slow_deviation = 0.12;
// A measurement that no cause explains: once in so many, and anywhere.
constexpr double odd = 1e-4, odd_deviation = 0.7;
constexpr double edge_deviation_min = 0.02, rtt_deviation_min = 0.05;
constexpr std::size_t cohort_min = 16;  // edges that cross as many links, to be compared apart

// How a fault and others' load show in probes: as loss, as latency, or not at all.
struct Showing {
  double loss, latency;
};
constexpr Showing fault_shows{0.7, 0.15}, load_shows{0.1, 0.6};
// Shares of links whose counters show errors, or marks: faulty, loaded, sound.
struct Counted {
  double fault, load, sound;
};
constexpr Counted with_errors{0.5, 0.004, 0.004}, with_marks{0.4, 0.85, 0.05};
constexpr double errors_min = 1e-7, marks_min = 1e-2;  // per packet

double log_normal(double x, double deviation) {
  return -0.5 * x * x / (deviation * deviation) -
         std::log(deviation * std::sqrt(2 * std::numbers::pi));
}

double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return high + std::log(std::exp(a - high) + std::exp(b - high));
}

// Log likelihood of a log ratio where `shift` is expected.
double log_likelihood(double x, double shift, double deviation) {
  return log_sum(std::log1p(-odd) + log_normal(x - shift, deviation),
                 std::log(odd) + log_normal(x, odd_deviation));
}

Grid ratios_of(double x, double deviation) {
  Grid out{};
  const double sound = log_likelihood(x, 0, deviation);
  for (std::size_t i = 0; i < factors.size(); ++i)
    out[i] = log_likelihood(x, std::log(factors[i]), std::hypot(deviation, slow_deviation)) - sound;
  return out;
}

// Of what the cause touches with that probability only.
void add(Grid& sum, const Grid& ratios, double share) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] += share >= 1 ? ratios[i] : std::log1p(share * std::expm1(std::min(ratios[i], 500.0)));
}

double log_mean(const Grid& grid) {
  const double high = std::ranges::max(grid);
  double sum = 0;
  for (const double g : grid) sum += std::exp(g - high);
  return high + std::log(sum / static_cast<double>(grid.size()));
}

// What is known against one part that can be slow.
struct Evidence {
  Grid slow{};                 // edges, groups or compute
  Grid loss{}, latency{};      // probes
  double fault = 0, load = 0;  // counters
  std::uint32_t seen = 0;      // edges or groups that would pass it
  double best = 1;             // the likeliest factor, once judged

  double log_ratio(Cause cause) {
    const auto likeliest = std::ranges::max_element(slow);
    best = *likeliest > 0 ? factors[static_cast<std::size_t>(likeliest - slow.begin())] : 1;
    if (cause == Cause::compute) return log_mean(slow);
    const bool is_load = cause == Cause::load;
    const Showing shows = is_load ? load_shows : fault_shows;
    const double shown =
        log_sum(std::log(shows.loss) + log_mean(loss), std::log(shows.latency) + log_mean(latency));
    const double probed = log_sum(shown, std::log(1 - shows.loss - shows.latency));
    return log_mean(slow) + probed + (is_load ? load : fault);
  }
};

struct Part {
  Cause cause;
  model::Entity entity;
  std::optional<std::uint32_t> rank;
  Evidence evidence;
};

class Network {
 public:
  Network(const Job& job, const Report& report, const NetworkInput& input)
      : job_(job), report_(report), in_(input), fabric_(input.fabric), paths_(fabric_, nullptr) {}

  Result<NetworkReport> run() {
    const bool is_placed = std::ranges::any_of(in_.gpus, [](NodeId g) { return g.valid(); });
    if (!is_placed)
      return fail(Errc::value, {}, "no rank of the job has a place in the fabric",
                  "name the hosts of its ranks, in order, by --hosts");
    find_heights();
    add_edges();
    add_groups();
    add_paces();
    if (in_.probes != nullptr) add_probes();
    add_counters();
    judge();
    out_.expected = expected_times(job_, report_, in_);
    find_slow_fabric();
    return std::move(out_);
  }

 private:
  NodeId nic_of(std::uint32_t rank) const {
    return rank < in_.gpus.size() && in_.gpus[rank].valid() ? fabric_.nic_of(in_.gpus[rank])
                                                            : NodeId();
  }

  // Hops to the nearest NIC.
  void find_heights() {
    height_.assign(fabric_.node_count(), ~0u);
    std::vector<NodeId> queue;
    for (const NodeId nic : fabric_.nics()) {
      height_[nic.index()] = 0;
      queue.push_back(nic);
    }
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const LinkId out : fabric_.out(queue[i]))
        if (const NodeId to = fabric_.to(out); fabric_.on_wire(out) && height_[to.index()] == ~0u) {
          height_[to.index()] = height_[queue[i].index()] + 1;
          queue.push_back(to);
        }
  }

  Evidence& at(Cause cause, model::Entity entity, std::optional<std::uint32_t> rank = {}) {
    const std::tuple key(cause, entity, rank);
    const auto [found, is_new] = index_.try_emplace(key, parts_.size());
    if (is_new) parts_.push_back({cause, entity, rank, {}});
    return parts_[found->second].evidence;
  }
  Cause direction_of(LinkId link) const {
    return height_[fabric_.from(link).index()] <= height_[fabric_.to(link).index()]
               ? Cause::up_link
               : Cause::down_link;
  }

  using Shares = std::vector<localise::LinkShare>;
  // Links of the path with their shares; empty inside a host.
  const Shares& path(NodeId src, NodeId dst) {
    const auto [at, is_new] = known_paths_.try_emplace({src, dst});
    if (!is_new) return at->second;
    if (src.valid() && dst.valid() && src != dst && fabric_.host_of(src) != fabric_.host_of(dst)) {
      const auto found = paths_.find(src, dst);
      at->second.assign(found.begin(), found.end());
    }
    return at->second;
  }

  // A measurement that everything on these links would make longer.
  void observe(const Shares& links, double over, double deviation) {
    const Grid ratios = ratios_of(over, deviation);
    const auto note = [&](Evidence& e, double share) {
      add(e.slow, ratios, std::min(1.0, share));
      ++e.seen;
    };
    std::map<model::CableId, double> cables;
    std::set<NodeId> nics;
    for (const auto& [link, share] : links) {
      note(at(direction_of(link), model::entity(link)), share);
      note(at(Cause::load, model::entity(link)), share);
      cables[cable_of(link)] += share;
      for (const NodeId end : {fabric_.from(link), fabric_.to(link)})
        if (fabric_.kind(end) == model::NodeKind::nic) nics.insert(end);
    }
    for (const auto& [cable, share] : cables) note(at(Cause::cable, model::entity(cable)), share);
    for (const NodeId nic : nics) note(at(Cause::card, model::entity(nic)), 1);
  }

  // Edges that cross as many links are compared with each other.
  void add_edges() {
    std::map<long, std::vector<std::size_t>> cohorts;
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < job_.edges.size(); ++i) {
      const EdgeWait& e = job_.edges[i];
      const Shares& links = path(nic_of(e.from), nic_of(e.to));
      if (links.empty()) continue;
      double hops = 0;
      for (const auto& [link, share] : links) hops += share;
      cohorts[std::lround(hops)].push_back(i);
      all.push_back(i);
      has_edges_.insert(e.group);
    }
    for (const auto& [hops, members] : cohorts) {
      std::vector<double> values;
      for (const std::size_t i : members.size() >= cohort_min ? members : all)
        values.push_back(job_.edges[i].over);
      const double centre = median(values);
      const double deviation = std::max(edge_deviation_min, spread(values, centre));
      for (const std::size_t i : members) {
        const EdgeWait& e = job_.edges[i];
        observe(path(nic_of(e.from), nic_of(e.to)), e.over - centre, deviation);
      }
    }
    out_.edge_count = all.size();
  }

  // Where there are no edges: a group passes the links between members that follow each other.
  void add_groups() {
    for (const Transfer& t : report_.transfers) {
      if (t.deviation <= 0 || has_edges_.contains(t.group)) continue;
      const std::vector<std::uint32_t>& members = job_.groups[t.group].members;
      std::map<LinkId, double> missed;  // link -> that no edge crosses it
      for (std::size_t i = 0; i < members.size(); ++i)
        for (const auto& [link, share] :
             path(nic_of(members[i]), nic_of(members[(i + 1) % members.size()])))
          missed.try_emplace(link, 1).first->second *= 1 - std::min(1.0, share);
      Shares links;
      for (const auto& [link, miss] : missed) links.push_back({link, 1 - miss});
      if (links.empty()) continue;
      observe(links, t.over, t.deviation);
      ++out_.group_count;
    }
  }

  void add_paces() {
    std::map<NodeId, std::vector<const Pace*>> hosts;
    for (const Pace& p : report_.paces) {
      const NodeId gpu = p.rank < in_.gpus.size() ? in_.gpus[p.rank] : NodeId();
      if (!gpu.valid()) continue;
      const NodeId host = fabric_.host_of(gpu);
      Evidence& e = at(Cause::compute, model::entity(host), p.rank);
      add(e.slow, ratios_of(p.over, p.deviation), 1);
      ++e.seen;
      hosts[host].push_back(&p);
    }
    for (const auto& [host, ranks] : hosts) {
      if (ranks.size() < 2) continue;
      Evidence& e = at(Cause::compute, model::entity(host));
      for (const Pace* p : ranks) add(e.slow, ratios_of(p->over, p->deviation), 1);
      e.seen += static_cast<std::uint32_t>(ranks.size());
    }
  }

  // Parts of the job that a path crosses, each once.
  void crossed(std::span<const LinkId> path, std::set<std::size_t>& parts) const {
    const auto note = [&](Cause cause, model::Entity entity) {
      const auto found = index_.find({cause, entity, std::nullopt});
      if (found != index_.end()) parts.insert(found->second);
    };
    for (const LinkId link : path) {
      note(direction_of(link), model::entity(link));
      note(Cause::load, model::entity(link));
      note(Cause::cable, model::entity(cable_of(link)));
      note(Cause::card, model::entity(fabric_.from(link)));
      note(Cause::card, model::entity(fabric_.to(link)));
    }
  }

  // Loss of probes that cross nothing bad. A row counts one loss at most: many come from what is
  // bad.
  double background() const {
    double sent = 1, lost = 0.5;
    for (const model::Evidence& row : in_.probes->rows) {
      sent += row.sent;
      lost += std::min(row.lost, 1u);
    }
    return std::clamp(lost / sent, 1e-6, 0.05);
  }

  static Grid loss_ratios(const model::Evidence& row, double background) {
    Grid out{};
    const double lost = row.lost, kept = row.sent - row.lost;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const double bad = background + rates[i] * (1 - background);
      out[i] = lost * std::log(bad / background) + kept * std::log((1 - bad) / (1 - background));
    }
    return out;
  }

  void add_probes() {
    const double sound = background();
    // Round trips over as many links take about as long.
    std::map<std::size_t, std::vector<double>> rtts;
    for (const model::Evidence& row : in_.probes->rows)
      if (row.path_size > 0 && row.rtt_p50_us > 0)
        rtts[row.path_size].push_back(std::log(row.rtt_p50_us));
    std::map<std::size_t, std::pair<double, double>> usual;
    for (auto& [size, values] : rtts) {
      const double centre = median(values);
      // Round trips are skewed: what is above the middle counts, too.
      std::ranges::sort(values);
      const double high = (values[values.size() * 19 / 20] - centre) / 1.645;
      usual[size] = {centre, std::max({rtt_deviation_min, spread(values, centre), high})};
    }
    for (const model::Evidence& row : in_.probes->rows) {
      if (row.path_size == 0) continue;
      std::set<std::size_t> parts;
      crossed(in_.probes->path(row), parts);
      if (parts.empty()) continue;
      ++out_.probe_rows;
      const Grid loss = loss_ratios(row, sound);
      for (const std::size_t p : parts) add(parts_[p].evidence.loss, loss, 1);
      if (row.rtt_p50_us <= 0) continue;
      const auto& [centre, deviation] = usual.at(row.path_size);
      const Grid latency = ratios_of(std::log(row.rtt_p50_us) - centre, deviation);
      for (const std::size_t p : parts) add(parts_[p].evidence.latency, latency, 1);
    }
  }

  void add_counters() {
    struct Sum {
      double packets = 0, errors = 0, marks = 0;
    };
    std::map<LinkId, Sum> links;
    for (const localise::LinkCounters& row : in_.counters) {
      Sum& sum = links[row.link];
      sum.packets += static_cast<double>(row.packets);
      sum.errors += static_cast<double>(row.errors);
      sum.marks += static_cast<double>(row.marks + row.drops);
    }
    for (const auto& [link, sum] : links) {
      if (sum.packets == 0) continue;
      const auto weigh = [&](const Counted& c, bool has, double Counted::* cause) {
        return has ? std::log(c.*cause / c.sound) : std::log((1 - c.*cause) / (1 - c.sound));
      };
      const bool has_errors = sum.errors > errors_min * sum.packets;
      const bool has_marks = sum.marks > marks_min * sum.packets;
      const LinkId one[] = {link};
      std::set<std::size_t> parts;
      crossed(one, parts);
      for (const std::size_t p : parts) {
        Evidence& e = parts_[p].evidence;
        e.fault += weigh(with_errors, has_errors, &Counted::fault) +
                   weigh(with_marks, has_marks, &Counted::fault);
        e.load += weigh(with_errors, has_errors, &Counted::load) +
                  weigh(with_marks, has_marks, &Counted::load);
      }
      out_.counter_rows += !parts.empty();
    }
  }

  void judge() {
    out_.is_judged = !parts_.empty();
    if (!out_.is_judged) return;
    std::array<double, cause_count> count{};
    for (const Part& p : parts_) ++count[static_cast<std::size_t>(p.cause)];
    std::vector<double> logs;
    double highest = std::log(prior[0]);
    for (Part& p : parts_) {
      const auto c = static_cast<std::size_t>(p.cause);
      logs.push_back(std::log(prior[c] / count[c]) + p.evidence.log_ratio(p.cause));
      highest = std::max(highest, logs.back());
    }
    double sum = std::exp(std::log(prior[0]) - highest);
    out_.nothing = sum;
    for (const double l : logs) sum += std::exp(l - highest);
    out_.nothing /= sum;
    constexpr double listed_min = 0.001;
    constexpr std::size_t listed_max = 20;
    if (out_.nothing >= listed_min) out_.suspects.push_back({.probability = out_.nothing});
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& p = parts_[i];
      const double probability = std::exp(logs[i] - highest) / sum;
      (p.cause == Cause::compute ? out_.compute
       : p.cause == Cause::load  ? out_.load
                                 : out_.network) += probability;
      if (probability >= listed_min)
        out_.suspects.push_back(
            {p.cause, p.entity, p.rank, probability, p.evidence.best, p.evidence.seen});
    }
    std::ranges::stable_sort(out_.suspects, std::ranges::greater(), &Suspect::probability);
    if (out_.suspects.size() > listed_max) out_.suspects.resize(listed_max);
  }

  void find_slow_fabric() {
    constexpr double slow = 1.3;
    std::size_t groups = 0, over = 0;
    std::vector<double> ratios;
    for (const Expected& e : out_.expected) {
      groups += e.groups;
      over += e.ratio() >= slow ? e.groups : 0;
      ratios.insert(ratios.end(), e.groups, e.ratio());
    }
    if (groups > 0 && over * 2 >= groups) out_.slow_fabric = median(ratios);
  }

  const Job& job_;
  const Report& report_;
  const NetworkInput& in_;
  const model::Fabric& fabric_;
  localise::PairPaths paths_;
  std::map<std::pair<NodeId, NodeId>, Shares> known_paths_;
  std::vector<std::uint32_t> height_;  // by node
  std::map<std::tuple<Cause, model::Entity, std::optional<std::uint32_t>>, std::size_t> index_;
  std::vector<Part> parts_;
  std::set<std::uint32_t> has_edges_;  // groups
  NetworkReport out_;
};

// Ranks with an edge over the part, as text.

}  // namespace

std::string_view to_text(Cause cause) {
  constexpr auto names = std::to_array<std::string_view>(
      {"nothing", "card", "up_link", "down_link", "cable", "compute", "load"});
  static_assert(names.size() == cause_count);
  return names[static_cast<std::size_t>(cause)];
}

std::int64_t latest_ns(const Job& job, std::int64_t until_ns) {
  std::int64_t out = 0;
  for (const Entry& e : job.entries)
    for (const std::int64_t t : {e.created_ns, e.started_ns, e.ended_ns})
      if (t <= until_ns) out = std::max(out, t);
  return out;
}

std::vector<NodeId> place_ranks(const model::Fabric& fabric, Job& job,
                                std::span<const std::optional<std::uint32_t>> hosts) {
  std::vector<NodeId> out(job.world);
  std::map<std::uint32_t, std::size_t> taken;  // host -> ranks on it
  for (std::size_t rank = 0; rank < std::min(out.size(), hosts.size()); ++rank) {
    if (!hosts[rank]) continue;
    const auto gpus = fabric.gpus_of(fabric.hosts()[*hosts[rank]]);
    if (const std::size_t at = taken[*hosts[rank]]++; at < gpus.size()) out[rank] = gpus[at];
  }
  const auto lost = std::ranges::count_if(out, [](NodeId g) { return !g.valid(); });
  if (lost > 0)
    job.notes.push_back(fmt::format("{} of {} ranks have no place in the fabric", lost, job.world));
  return out;
}

Result<NetworkReport> judge_network(const Job& job, const Report& report,
                                    const NetworkInput& input) {
  return Network(job, report, input).run();
}

}  // namespace weft::observe::colltrace
