#include "observe/colltrace/hang.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weft::observe::colltrace {
namespace {

constexpr std::size_t open_entries_max = 64;  // of a rank, from its end

class Hang {
 public:
  Hang(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options, Report& report)
      : job_(job), cohorts_(cohorts), options_(options), report_(report), in_(job.world) {}

  void run() {
    find_waits();
    find_mismatches();
    if (verdicts_.empty() && stands_still()) find_roots();
    std::ranges::move(verdicts_, std::back_inserter(report_.verdicts));
    report_.is_hang = !report_.verdicts.empty();
    report_.waits = std::move(waits_);
  }

 private:
  void find_waits();
  bool is_one_moment() const;
  bool stands_still();
  void find_mismatches();
  void judge_signatures(const Blocked& wait);
  std::vector<std::uint32_t> signatures(std::uint32_t group, std::uint32_t seq) const;
  std::optional<std::uint32_t> majority(std::uint32_t group, std::uint32_t seq) const;
  std::optional<std::uint32_t> usual_next(std::uint32_t group, std::uint32_t seq) const;
  Finding classify(const Blocked& wait, std::size_t member, std::uint32_t expected) const;
  void find_roots();
  bool find_stuck();
  std::int64_t called_ns(const Blocked& wait) const;
  bool find_dead_or_network();
  void name_dead(const Blocked& first, const std::vector<const Blocked*>& candidates);
  void find_divergence();
  Verdict verdict(Finding finding, const Blocked& wait) const;

  const Job& job_;
  const Cohorts& cohorts_;
  const AnalysisOptions& options_;
  Report& report_;
  std::vector<Blocked> waits_;                // by group and number
  std::vector<std::vector<std::size_t>> in_;  // rank -> the waits that it is in
  std::vector<Verdict> verdicts_;
};

bool has_begun(const Entry* e) { return e != nullptr && e->state != EntryState::scheduled; }

void Hang::find_waits() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  for (const RankTrace& rank : job_.ranks) {
    if (rank.is_gone) continue;
    const auto entries = rank.in(job_.entries);
    const std::size_t from =
        entries.size() > open_entries_max ? entries.size() - open_entries_max : 0;
    for (const Entry& e : entries.subspan(from))
      if (e.state == EntryState::started && e.is_aside == 0) known.try_emplace({e.group, e.seq}, 0);
  }
  for (auto& [key, index] : known) {
    Blocked wait{.group = key.first, .seq = key.second};
    const auto& members = job_.groups[wait.group].members;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const Entry* e = cohorts_.at(wait.group, m, wait.seq);
      const bool is_through = cohorts_.is_past(wait.group, m, wait.seq) ||
                              (e != nullptr && e->state == EntryState::completed);
      if (is_through) continue;
      const bool is_in = has_begun(e) && !cohorts_.trace(members[m]).is_gone;
      (is_in ? wait.joined : wait.absent).push_back(members[m]);
    }
    for (const std::uint32_t rank : wait.joined) in_[rank].push_back(waits_.size());
    waits_.push_back(std::move(wait));
  }
  for (const RankTrace& rank : job_.ranks) report_.waiting_count += !in_[rank.rank].empty();
}

// Dumps of a job that runs are taken at slightly different times: somebody has completed what
// another had not begun. A send ends before its receiver looks.
bool Hang::is_one_moment() const {
  for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
    if (job_.groups[g].is_pair) continue;
    const auto& members = job_.groups[g].members;
    std::optional<std::uint32_t> completed;  // the largest of any member
    std::optional<std::uint32_t> begun;      // the smallest of the members' largest
    for (std::size_t m = 0; m < members.size(); ++m) {
      const auto slot = cohorts_.slot(g, m);
      std::optional<std::uint32_t> last_begun;
      for (std::size_t i = slot.size(); i-- > 0;) {
        const Entry& e = job_.entries[slot[i]];
        if (!has_begun(&e)) continue;
        if (!last_begun) last_begun = e.seq;
        if (e.state != EntryState::completed) continue;
        completed = std::max(completed.value_or(0), e.seq);
        break;
      }
      if (last_begun) begun = std::min(begun.value_or(~0u), *last_begun);
    }
    if (completed && begun && *completed > *begun) return false;
  }
  return true;
}

// Of a job that runs, most ranks compute, and those that wait are waited for by many. Where it
// is stalled, all ranks end up waiting but for a few.
bool Hang::stands_still() {
  if (waits_.empty()) return false;
  if (options_.is_stalled) return true;
  if (!is_one_moment()) {
    report_.is_moving = true;
    return false;
  }
  std::set<std::uint32_t> outside, hosts_outside, hosts_missing, full, lost, lacking;
  for (const Blocked& wait : waits_) {
    std::size_t without_dump = 0;
    for (const std::uint32_t rank : wait.absent) {
      without_dump += !cohorts_.has(rank);
      if (!cohorts_.has(rank)) hosts_missing.insert(rank / options_.ranks_per_host);
      if (!cohorts_.has(rank) || !in_[rank].empty()) continue;
      outside.insert(rank);
      hosts_outside.insert(rank / options_.ranks_per_host);
    }
    auto& kind = wait.absent.empty() ? full : without_dump == wait.absent.size() ? lost : lacking;
    kind.insert(wait.group);
  }
  const std::size_t ranks = job_.ranks.size();
  if (report_.waiting_count * 2 < ranks) return false;
  // Everybody is in the same: it may be on its way, unless one host has left nothing.
  if (lacking.empty() && (!full.empty() || hosts_missing.size() > 1)) return false;
  // Transfers of a job that runs have all their members, here and there; where one does not end,
  // others wait for its members.
  if (!full.empty()) {
    full.insert(lost.begin(), lost.end());
    const std::string& kind = job_.groups[*full.begin()].description;
    const auto of_kind = std::ranges::count(job_.groups, kind, &Group::description);
    if (full.size() > lacking.size()) return false;
    if (full.size() > 1 && full.size() * 8 > static_cast<std::size_t>(of_kind)) return false;
  }
  return hosts_outside.size() <= 1 || outside.size() * 20 <= ranks * 3;
}

std::vector<std::uint32_t> Hang::signatures(std::uint32_t group, std::uint32_t seq) const {
  std::vector<std::uint32_t> out;
  for (std::size_t m = 0; m < job_.groups[group].members.size(); ++m)
    if (const Entry* e = cohorts_.at(group, m, seq)) out.push_back(e->signature);
  return out;
}

// What most members called; none where two are called equally often.
std::optional<std::uint32_t> Hang::majority(std::uint32_t group, std::uint32_t seq) const {
  std::map<std::uint32_t, std::size_t> count;
  for (const std::uint32_t s : signatures(group, seq)) ++count[s];
  std::optional<std::uint32_t> best;
  std::size_t most = 0;
  for (const auto& [signature, times] : count) {
    if (times == most) best.reset();
    if (times <= most) continue;
    best = signature;
    most = times;
  }
  return best;
}

// What came next where the group did the same before: programs repeat.
std::optional<std::uint32_t> Hang::usual_next(std::uint32_t group, std::uint32_t seq) const {
  if (const auto next = majority(group, seq + 1)) return next;
  const auto now = majority(group, seq), before = seq > 0 ? majority(group, seq - 1) : now;
  constexpr std::uint32_t look_back_max = 200;
  for (std::uint32_t back = 1; back <= look_back_max && back + 1 < seq; ++back)
    if (majority(group, seq - back) == now && majority(group, seq - back - 1) == before)
      return majority(group, seq - back + 1);
  return {};
}

Finding Hang::classify(const Blocked& wait, std::size_t member, std::uint32_t expected) const {
  const Entry* now = cohorts_.at(wait.group, member, wait.seq);
  const Entry* then = cohorts_.at(wait.group, member, wait.seq + 1);
  const auto next = usual_next(wait.group, wait.seq);
  if (next && *next == now->signature && *next != expected) {  // one ahead of the others
    const auto after = majority(wait.group, wait.seq + 2);
    if (then != nullptr && then->signature == expected && after != expected) return Finding::order;
    if (then != nullptr && after && then->signature == *after && *after != expected)
      return Finding::skip;
    return Finding::order_or_skip;
  }
  const Signature &a = job_.signatures[expected], &b = job_.signatures[now->signature];
  if (a.operation != b.operation) return Finding::operation;
  return a.type != b.type ? Finding::type : Finding::size;
}

std::string text_of(const Signature& s) {
  std::string out = s.operation;
  for (const std::string& part : {s.type, s.size})
    if (!part.empty()) out += " " + part;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

Verdict Hang::verdict(Finding finding, const Blocked& wait) const {
  Verdict out{.finding = finding, .groups = {wait.group}, .seq = wait.seq};
  if (const auto s = majority(wait.group, wait.seq)) out.operation = job_.signatures[*s].operation;
  return out;
}

void Hang::judge_signatures(const Blocked& wait) {
  const std::vector<std::uint32_t> all = signatures(wait.group, wait.seq);
  if (std::ranges::adjacent_find(all, std::ranges::not_equal_to{}) == all.end()) return;
  const auto expected = majority(wait.group, wait.seq);
  const auto& members = job_.groups[wait.group].members;
  if (!expected) {  // as many of one as of the other: one side is wrong
    Verdict both = verdict(Finding::operation, wait);
    for (std::size_t m = 0; m < members.size(); ++m)
      if (cohorts_.at(wait.group, m, wait.seq) != nullptr) both.ranks.push_back(members[m]);
    both.expected = text_of(job_.signatures[all.front()]);
    both.found = text_of(job_.signatures[*std::ranges::find_if(
        all, [&](std::uint32_t s) { return s != all.front(); })]);
    verdicts_.push_back(std::move(both));
    return;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Entry* e = cohorts_.at(wait.group, m, wait.seq);
    if (e == nullptr || e->signature == *expected) continue;
    Verdict one = verdict(classify(wait, m, *expected), wait);
    one.ranks = {members[m]};
    one.expected = text_of(job_.signatures[*expected]);
    one.found = text_of(job_.signatures[e->signature]);
    verdicts_.push_back(std::move(one));
  }
}

void Hang::find_mismatches() {
  for (const Blocked& wait : waits_)
    if (!job_.groups[wait.group].is_pair) judge_signatures(wait);
  // A rank that left one out differs in all that follows: it is named once.
  std::set<std::uint32_t> named;
  std::erase_if(verdicts_, [&](const Verdict& v) {
    return v.ranks.size() == 1 && !named.insert(v.ranks.front()).second;
  });
}

void Hang::find_roots() {
  if (find_stuck()) return;
  if (!find_dead_or_network()) find_divergence();
}

bool Hang::find_stuck() {
  std::set<std::uint32_t> named;
  for (const Blocked& wait : waits_)
    for (const std::uint32_t rank : wait.absent) {
      if (!cohorts_.has(rank) || !in_[rank].empty() || !named.insert(rank).second) continue;
      Verdict one = verdict(cohorts_.trace(rank).is_gone ? Finding::dead : Finding::stuck, wait);
      one.ranks = {rank};
      verdicts_.push_back(std::move(one));
    }
  return !verdicts_.empty();
}

// When the last of those who came had called it.
std::int64_t Hang::called_ns(const Blocked& wait) const {
  std::int64_t out = 0;
  const auto& members = job_.groups[wait.group].members;
  for (std::size_t m = 0; m < members.size(); ++m)
    if (const Entry* e = cohorts_.at(wait.group, m, wait.seq); has_begun(e))
      out = std::max(out, e->created_ns != 0 ? e->created_ns : e->started_ns);
  return out;
}

// An operation that all members are in waits for nobody: it is a cause. One that lacks only ranks
// without a dump may be another; it is one if the others began to wait there before they did
// anywhere else. Sends tell less, because a receiver waits in the normal course of a pipeline.
// True where there is one of either, though it may not be called by its name.
bool Hang::find_dead_or_network() {
  using Order = std::pair<bool, std::int64_t>;
  std::optional<Order> first_full, first_dead;
  const Blocked* first = nullptr;
  std::vector<const Blocked*> candidates;
  for (const Blocked& wait : waits_) {
    const Order order{job_.groups[wait.group].is_pair, called_ns(wait)};
    if (wait.absent.empty() && (!first_full || order < *first_full)) first_full = order;
    const bool may_be = !wait.absent.empty() && std::ranges::none_of(wait.absent, [&](auto rank) {
      return cohorts_.has(rank);
    });
    if (!may_be) continue;
    candidates.push_back(&wait);
    if (first_dead && *first_dead <= order) continue;
    first_dead = order;
    first = &wait;
  }
  if (first_full && (!first_dead || *first_full <= *first_dead)) {
    std::set<std::uint32_t> named;
    for (const Blocked& wait : waits_)
      if (wait.absent.empty() && named.insert(wait.group).second)
        verdicts_.push_back(verdict(Finding::network, wait));
  } else if (first != nullptr && options_.has_all_dumps) {
    name_dead(*first, candidates);
  }
  return first_full || first != nullptr;
}

// Those that `first` lacks, and whom others wait for on the same host.
void Hang::name_dead(const Blocked& first, const std::vector<const Blocked*>& candidates) {
  const auto host = [&](std::uint32_t rank) { return rank / options_.ranks_per_host; };
  const std::uint32_t place = host(first.absent.front());
  // Dumps that are missing elsewhere say that this one may be missing for no reason, too.
  bool is_missing_elsewhere = false;
  for (std::uint32_t rank = 0; rank < job_.world; ++rank)
    is_missing_elsewhere |= !cohorts_.has(rank) && host(rank) != place;
  Verdict one = verdict(is_missing_elsewhere ? Finding::dead_or_network : Finding::dead, first);
  std::set<std::uint32_t> ranks(first.absent.begin(), first.absent.end());
  for (const Blocked* wait : candidates) {
    if (host(wait->absent.front()) != place || job_.groups[wait->group].is_pair) continue;
    if (!is_missing_elsewhere) ranks.insert(wait->absent.begin(), wait->absent.end());
    if (wait != &first && ranks.contains(wait->absent.front())) one.groups.push_back(wait->group);
  }
  one.ranks.assign(ranks.begin(), ranks.end());
  verdicts_.push_back(std::move(one));
}

// Nobody is outside and no operation has all its members: ranks wait for each other in a circle,
// because one runs another program than its peers. It is the one that departs from most of them.
void Hang::find_divergence() {
  constexpr std::size_t peers_max = 12;
  const auto token = [&](const Entry& e) {
    return std::pair(std::string_view(job_.groups[e.group].description),
                     static_cast<std::uint32_t>(e.signature));
  };
  const auto departs = [&](std::uint32_t a, std::uint32_t b) {
    const auto x = cohorts_.entries(a), y = cohorts_.entries(b);
    const std::uint64_t x0 = cohorts_.trace(a).first_record, y0 = cohorts_.trace(b).first_record;
    const std::uint64_t from = std::max(x0, y0), to = std::min(x0 + x.size(), y0 + y.size());
    for (std::uint64_t i = from; i < to; ++i)
      if (token(x[i - x0]) != token(y[i - y0])) return true;
    return false;
  };
  std::vector<std::pair<std::uint32_t, const Blocked*>> found;
  for (const Blocked& wait : waits_)
    for (const std::uint32_t rank : wait.absent) {
      if (!cohorts_.has(rank)) continue;
      std::size_t groups = 0, against = 0;
      for (const std::uint32_t g : cohorts_.groups_of(rank)) {
        std::size_t peers = 0, differ = 0;
        for (const std::uint32_t peer : job_.groups[g].members) {
          if (peer == rank || !cohorts_.has(peer) || peers == peers_max) continue;
          ++peers;
          differ += departs(rank, peer);
        }
        if (peers < 3) continue;
        ++groups;
        against += differ * 2 > peers;
      }
      if (groups > 0 && against == groups &&
          std::ranges::none_of(found, [&](const auto& f) { return f.first == rank; }))
        found.emplace_back(rank, &wait);
    }
  for (const auto& [rank, wait] : found) {
    Verdict one = verdict(Finding::order_or_skip, *wait);
    one.ranks = {rank};
    verdicts_.push_back(std::move(one));
  }
}

}  // namespace

void find_hang(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options,
               Report& report) {
  Hang(job, cohorts, options, report).run();
}

}  // namespace weft::observe::colltrace
