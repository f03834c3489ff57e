#include "observe/colltrace/hang.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace weft::observe::colltrace {
namespace {

// An operation that some member is in.
struct Blocked {
  std::uint32_t group = 0, seq = 0;
  std::vector<std::uint32_t> joined, absent;  // members' ranks; those that are through are in none
  bool is_left = false;                       // some member is through
};

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
  void find_dead();
  void find_network();
  void find_divergence();
  std::set<std::uint32_t> explained_by(std::set<std::uint32_t> roots) const;
  Verdict verdict(Finding finding, const Blocked& wait) const;
  // The waits that a rank takes part in; for one without a dump, those of its groups.
  std::vector<std::size_t> possible_waits(std::uint32_t rank) const;

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
      if (cohorts_.is_past(wait.group, m, wait.seq) ||
          (e != nullptr && e->state == EntryState::completed))
        wait.is_left = true;
      else
        (has_begun(e) ? wait.joined : wait.absent).push_back(members[m]);
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
// stands still, all ranks end up waiting but for a few.
bool Hang::stands_still() {
  if (waits_.empty()) return false;
  if (!is_one_moment()) {
    report_.is_moving = true;
    return false;
  }
  std::set<std::uint32_t> outside, hosts;
  std::size_t in_nothing = 0;
  for (const RankTrace& rank : job_.ranks) in_nothing += in_[rank.rank].empty();
  bool somebody_waits = false;
  for (const Blocked& wait : waits_) {
    somebody_waits = somebody_waits || !wait.absent.empty();
    for (const std::uint32_t rank : wait.absent)
      if (cohorts_.has(rank) && in_[rank].empty()) {
        outside.insert(rank);
        hosts.insert(rank / options_.ranks_per_host);
      }
  }
  const std::size_t ranks = job_.ranks.size();
  if (in_nothing * 2 > ranks) return false;
  if (!somebody_waits) return waits_.size() == 1 && in_nothing == 0 && ranks > 2;
  return hosts.size() <= 1 || outside.size() * 20 <= ranks * 3;
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
  find_dead();
  if (verdicts_.empty()) find_network();
  if (verdicts_.empty()) find_divergence();
}

bool Hang::find_stuck() {
  std::set<std::uint32_t> named;
  for (const Blocked& wait : waits_)
    for (const std::uint32_t rank : wait.absent) {
      if (!cohorts_.has(rank) || !in_[rank].empty() || !named.insert(rank).second) continue;
      Verdict one = verdict(Finding::stuck, wait);
      one.ranks = {rank};
      verdicts_.push_back(std::move(one));
    }
  return !verdicts_.empty();
}

std::vector<std::size_t> Hang::possible_waits(std::uint32_t rank) const {
  if (cohorts_.has(rank)) return in_[rank];
  std::vector<std::size_t> out;
  for (std::size_t w = 0; w < waits_.size(); ++w) {
    const auto& members = job_.groups[waits_[w].group].members;
    if (std::ranges::find(members, rank) != members.end()) out.push_back(w);
  }
  return out;
}

// All ranks that wait for one of these, or for one that does.
std::set<std::uint32_t> Hang::explained_by(std::set<std::uint32_t> roots) const {
  std::vector<std::uint32_t> open(roots.begin(), roots.end());
  while (!open.empty()) {
    const std::uint32_t rank = open.back();
    open.pop_back();
    for (const Blocked& wait : waits_) {
      if (std::ranges::find(wait.absent, rank) == wait.absent.end()) continue;
      for (const std::uint32_t member : job_.groups[wait.group].members)
        if (roots.insert(member).second) open.push_back(member);
    }
  }
  return roots;
}

// Ranks without a dump that others wait for, and that may themselves wait for nobody else: each has
// either died, or is one of those whose dump is missing for another reason.
void Hang::find_dead() {
  std::set<std::uint32_t> missing;
  for (const Blocked& wait : waits_)
    for (const std::uint32_t rank : wait.absent)
      if (!cohorts_.has(rank)) missing.insert(rank);
  if (missing.empty()) return;
  std::set<std::uint32_t> full;  // a wait that nobody is absent from explains its members
  for (const Blocked& wait : waits_)
    if (wait.absent.empty()) full.insert(wait.joined.begin(), wait.joined.end());
  const std::set<std::uint32_t> excused = explained_by(full);
  std::map<std::uint32_t, std::vector<std::size_t>> alone;  // rank -> waits for it alone
  for (const std::uint32_t rank : missing) {
    if (excused.contains(rank)) continue;
    bool may_wait = false;
    for (const std::size_t w : possible_waits(rank)) {
      const auto& absent = waits_[w].absent;
      const bool is_absent = std::ranges::find(absent, rank) != absent.end();
      if (is_absent && absent.size() == 1) alone[rank].push_back(w);
      may_wait = may_wait || std::ranges::any_of(absent, [&](std::uint32_t other) {
                   return other != rank && cohorts_.has(other);
                 });
    }
    if (may_wait) alone.erase(rank);
  }
  if (alone.empty()) return;
  std::size_t most = 0;
  for (const auto& [rank, waits] : alone) most = std::max(most, waits.size());
  std::erase_if(alone, [&](const auto& one) { return one.second.size() < most; });
  // Dumps that are missing for no such reason say that this one may be, too.
  std::set<std::uint32_t> hosts;
  std::size_t elsewhere = 0;
  for (const auto& [rank, waits] : alone) hosts.insert(rank / options_.ranks_per_host);
  for (std::uint32_t rank = 0; rank < job_.world; ++rank)
    elsewhere += !cohorts_.has(rank) && !hosts.contains(rank / options_.ranks_per_host);
  for (const auto& [rank, waits] : alone) {
    Verdict one =
        verdict(elsewhere > 0 ? Finding::dead_or_network : Finding::dead, waits_[waits.front()]);
    one.ranks = {rank};
    one.groups.clear();
    for (const std::size_t w : waits) one.groups.push_back(waits_[w].group);
    verdicts_.push_back(std::move(one));
  }
}

void Hang::find_network() {
  for (const Blocked& wait : waits_)
    if (wait.absent.empty()) verdicts_.push_back(verdict(Finding::network, wait));
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
