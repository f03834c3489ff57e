#include "observe/colltrace/slow.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.hpp"
#include "observe/colltrace/median.hpp"

namespace weft::observe::colltrace {
namespace {

// A fault may begin within the window, and a mean over all of it would drown: each part is judged.
constexpr std::size_t parts = 4;
constexpr std::size_t peers_min = 8, values_min = 8, sampled_max = 64;
constexpr double gap_min_us = 50;    // shorter ones are host overhead
constexpr double excess_min = 0.04;  // 4 % longer
constexpr double score_min = 6;      // in robust standard deviations
constexpr double deviation_min = 0.003;

// How far each value is above the median, and in standard deviations.
struct Excess {
  std::vector<double> over, score;
};
Excess excess_of(const std::vector<double>& values) {
  std::vector<double> work = values;
  const double centre = median(work);
  const double deviation = std::max(deviation_min, spread(values, centre));
  Excess out;
  for (const double v : values) {
    out.over.push_back(v - centre);
    out.score.push_back((v - centre) / deviation);
  }
  return out;
}

class Slow {
 public:
  Slow(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options, Report& report)
      : job_(job),
        cohorts_(cohorts),
        options_(options),
        report_(report),
        over_(job.world, 0),
        score_(job.world, 0) {}

  void run() {
    if (has_measured_times()) {
      find_roles();
      for (const auto& [role, ranks] : roles_)
        if (ranks.size() >= peers_min) compare(ranks);
      name_hosts();
      name_ranks();
      for (const RankTrace& r : job_.ranks)
        if (score_[r.rank] > 0)
          report_.paces.push_back({r.rank, over_[r.rank], over_[r.rank] / score_[r.rank]});
    }
    compare_groups();
  }

 private:
  // Starts and ends are device times where their difference is what the device measured.
  bool has_measured_times() const {
    if (job_.has_measured_times) return true;
    std::size_t known = 0, right = 0;
    const std::size_t step = std::max<std::size_t>(1, job_.entries.size() / 10'000);
    for (std::size_t i = 0; i < job_.entries.size(); i += step) {
      const Entry& e = job_.entries[i];
      if (e.state != EntryState::completed || e.duration_us <= 0) continue;
      ++known;
      const double us = static_cast<double>(e.ended_ns - e.started_ns) / 1000;
      right += e.started_ns != 0 && std::abs(us - e.duration_us) <= 20 + 0.02 * e.duration_us;
    }
    return known > 0 && right * 10 >= known * 9;
  }

  // Ranks that called the same in the records that all have.
  void find_roles() {
    std::uint64_t to = ~std::uint64_t{0};
    for (const RankTrace& r : job_.ranks) {
      from_ = std::max(from_, r.first_record);
      to = std::min(to, r.first_record + (r.end - r.begin));
    }
    length_ = to > from_ ? to - from_ : 0;
    gaps_.assign(job_.world, {});
    if (length_ == 0) return;  // one rank's records end before another's begin
    for (const RankTrace& r : job_.ranks) {
      const auto entries = r.in(job_.entries).subspan(from_ - r.first_record);
      std::uint64_t role = 0;
      std::int64_t busy_until = 0;
      auto& gaps = gaps_[r.rank];
      gaps.reserve(length_);
      for (const Entry& e : entries.first(length_)) {
        role = mix64(role ^ (e.signature + 1));
        const bool follows = busy_until != 0 && e.started_ns > busy_until;
        gaps.push_back(follows ? static_cast<float>(e.started_ns - busy_until) / 1000 : 0);
        busy_until = std::max(busy_until, e.ended_ns);
      }
      roles_[role].push_back(r.rank);
    }
  }

  void compare(const std::vector<std::uint32_t>& ranks) {
    std::vector<double> usual(length_), work;
    const std::size_t step = std::max<std::size_t>(1, ranks.size() / sampled_max);
    for (std::size_t i = 0; i < length_; ++i) {
      work.clear();
      for (std::size_t k = 0; k < ranks.size(); k += step) work.push_back(gaps_[ranks[k]][i]);
      usual[i] = median(work);
    }
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<double> ratios;
      for (const std::uint32_t rank : ranks) {
        work.clear();
        for (std::size_t i = part * length_ / parts; i < (part + 1) * length_ / parts; ++i)
          if (usual[i] > gap_min_us && gaps_[rank][i] > 0)
            work.push_back(gaps_[rank][i] / usual[i]);
        ratios.push_back(work.size() < values_min ? 0 : std::log(median(work)));
      }
      const Excess excess = excess_of(ratios);
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        if (excess.score[k] <= score_[ranks[k]]) continue;
        score_[ranks[k]] = excess.score[k];
        over_[ranks[k]] = excess.over[k];
      }
    }
  }

  void name_hosts() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> hosts;
    for (const RankTrace& r : job_.ranks) hosts[r.rank / options_.ranks_per_host].push_back(r.rank);
    for (const auto& [host, ranks] : hosts) {
      if (ranks.size() < 2) continue;
      std::size_t slow = 0;
      std::vector<double> over;
      for (const std::uint32_t rank : ranks) {
        over.push_back(over_[rank]);
        slow += is_slow(rank);
      }
      if (slow * 4 < ranks.size() * 3) continue;
      report_.verdicts.push_back(
          {.finding = Finding::slow_host, .ranks = ranks, .factor = std::exp(median(over))});
      named_.insert(ranks.begin(), ranks.end());
    }
  }
  void name_ranks() {
    for (const RankTrace& r : job_.ranks)
      if (is_slow(r.rank) && !named_.contains(r.rank))
        report_.verdicts.push_back(
            {.finding = Finding::slow_rank, .ranks = {r.rank}, .factor = std::exp(over_[r.rank])});
  }
  bool is_slow(std::uint32_t rank) const {
    return over_[rank] > excess_min && score_[rank] > score_min;
  }

  // How long the last one to come to an operation was in it: the transfer, without waiting.
  double transfer_us(std::uint32_t group, std::uint32_t seq, std::uint32_t& signature) const {
    double least = 0;
    for (std::size_t m = 0; m < job_.groups[group].members.size(); ++m) {
      const Entry* e = cohorts_.at(group, m, seq);
      if (e == nullptr || e->state != EntryState::completed || e->duration_us <= 0) return 0;
      signature = e->signature;
      least = least == 0 ? e->duration_us : std::min<double>(least, e->duration_us);
    }
    return least;
  }

  void compare_groups() {
    using Kind =
        std::tuple<std::string, std::size_t, std::uint32_t>;  // description, size, signature
    std::map<Kind, std::vector<std::pair<double, std::uint32_t>>> kinds;
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      const Group& group = job_.groups[g];
      if (group.is_pair || group.members.size() < 2) continue;
      std::map<std::uint32_t, std::vector<double>> by_signature;
      for (const std::uint32_t i : cohorts_.slot(g, 0)) {
        std::uint32_t signature = 0;
        if (const double us = transfer_us(g, job_.entries[i].seq, signature); us > 0)
          by_signature[signature].push_back(us);
      }
      for (auto& [signature, values] : by_signature)
        if (values.size() >= 2)
          kinds[{group.description, group.members.size(), signature}].emplace_back(median(values),
                                                                                   g);
    }
    std::map<std::uint32_t, std::pair<int, int>> tested;  // group -> slow, in all
    std::map<std::uint32_t, double> factor;
    for (const auto& [kind, groups] : kinds) {
      constexpr std::size_t groups_min = 6;
      for (const auto& [us, g] : groups)
        report_.transfers.push_back({g, std::get<2>(kind), us, 0, 0});
      if (groups.size() < groups_min) continue;
      std::vector<double> sorted;
      for (const auto& [us, g] : groups) sorted.push_back(us);
      std::ranges::sort(sorted);
      // A quarter of the groups may be slow: the middle of the others.
      const double centre = sorted[sorted.size() * 2 / 5], low = sorted[sorted.size() / 10];
      const double deviation = std::max(0.02, std::log(centre / low) / 1.03);
      const std::size_t first = report_.transfers.size() - groups.size();
      std::size_t i = 0;
      for (const auto& [us, g] : groups) {
        const double over = std::log(us / centre);
        Transfer& said = report_.transfers[first + i++];
        said.over = over;
        said.deviation = deviation;
        tested[g].first += over > 0.1 && over / deviation > score_min;
        ++tested[g].second;
        factor[g] = std::max(factor[g], us / centre);
      }
    }
    Verdict all{.finding = Finding::slow_network};
    for (const auto& [g, counts] : tested) {
      if (counts.first * 2 < counts.second || counts.first == 0) continue;
      all.groups.push_back(g);
      all.factor = std::max(all.factor, factor[g]);
    }
    if (!all.groups.empty()) report_.verdicts.push_back(std::move(all));
  }

  const Job& job_;
  const Cohorts& cohorts_;
  const AnalysisOptions& options_;
  Report& report_;
  std::uint64_t from_ = 0, length_ = 0;
  std::map<std::uint64_t, std::vector<std::uint32_t>> roles_;
  std::vector<std::vector<float>> gaps_;  // rank -> compute before each record, us
  std::vector<double> over_, score_;      // rank -> log of the factor, of its worst part
  std::set<std::uint32_t> named_;
};

}  // namespace

void find_slow(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options,
               Report& report) {
  Slow(job, cohorts, options, report).run();
}

}  // namespace weft::observe::colltrace
