#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "workload/trace/goal.hpp"

namespace weft::workload {
namespace {

// Where messages come from: (source, tag). goal_any stands for any of either.
struct Key {
  std::uint32_t source = 0, tag = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
  std::string text() const { return fmt::format("from rank {} with tag {}", source, tag); }
};

// One send or receive; `order` is that of the file.
struct End {
  std::uint32_t target = 0;  // the receiver
  Key key;
  std::uint32_t order = 0;
  GoalOp* op = nullptr;
  auto by_key() const { return std::tuple(target, key, order); }
};

struct Matcher {
  GoalSchedule& schedule;
  std::vector<GoalFault>& faults;
  std::vector<End> sends, receives;
  std::uint64_t resized = 0;

  void fault(Errc code, const GoalOp& op, std::string what, std::string hint) {
    if (faults.size() < goal_faults_max)
      faults.push_back({code, op.at, std::move(what), std::move(hint)});
  }

  void collect() {
    for (GoalRank& rank : schedule.ranks)
      for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
        GoalOp& op = rank.ops[i];
        if (op.kind == GoalOp::Kind::calc) continue;
        if (op.peer == rank.rank)
          fault(Errc::unsupported, op,
                fmt::format("rank {} sends to or receives from itself", rank.rank),
                "let the receiver's dependents require the sender's instead");
        else if (op.kind == GoalOp::Kind::send)
          sends.push_back({op.peer, {rank.rank, op.tag}, i, &op});
        else
          receives.push_back({rank.rank, {op.peer, op.tag}, i, &op});
      }
    std::ranges::sort(sends, {}, &End::by_key);
    std::ranges::sort(receives, {}, &End::by_key);
  }

  // Rank by rank, as both lists are sorted by the receiver.
  void run() {
    collect();
    std::span<const End> rest(sends);
    std::span<End> wanted(receives);
    while (!wanted.empty() || !rest.empty()) {
      const std::uint32_t target = std::min(wanted.empty() ? goal_any : wanted[0].target,
                                            rest.empty() ? goal_any : rest[0].target);
      const auto same = [&](const End& end) { return end.target == target; };
      const auto given =
          static_cast<std::size_t>(std::ranges::find_if_not(rest, same) - rest.begin());
      const auto asked =
          static_cast<std::size_t>(std::ranges::find_if_not(wanted, same) - wanted.begin());
      match_rank(rest.first(given), wanted.first(asked));
      rest = rest.subspan(given);
      wanted = wanted.subspan(asked);
    }
  }

  void match_rank(std::span<const End> given, std::span<End> asked);
  void pair(std::span<const End> given, std::span<End> asked);
};

// Finds the only possible source of receives that leave source or tag open. Messages that
// receives with both given must get are set aside first: the counts of a schedule that runs
// through must balance.
class Wildcards {
 public:
  // How many messages of each key are left for wildcards.
  explicit Wildcards(std::map<Key, std::uint64_t> left) : left_(std::move(left)) {
    for (const auto& [key, count] : left_)
      for (const Key& pattern : patterns(key)) sources_[pattern].insert(key);
  }

  void add(End& end) { pending_[end.key].push_back(&end); }

  // Serves every pattern with one source, until each has none or several.
  void run() {
    std::vector<Key> todo;
    for (const auto& [pattern, ends] : pending_) todo.push_back(pattern);
    while (!todo.empty()) {
      const Key pattern = todo.back();
      todo.pop_back();
      const auto sources = sources_.find(pattern);
      const auto ends = pending_.find(pattern);
      if (ends == pending_.end() || sources == sources_.end() || sources->second.size() != 1)
        continue;
      const Key key = *sources->second.begin();
      for (auto& list = ends->second; !list.empty() && left_[key] > 0; list.pop_back()) {
        list.back()->key = key;
        --left_[key];
      }
      if (ends->second.empty()) pending_.erase(ends);
      if (left_[key] > 0) continue;
      for (const Key& other : patterns(key)) {
        sources_[other].erase(key);
        todo.push_back(other);
      }
    }
  }

  // Receives still open and the sources that each could have (at most two are given).
  template <class Visit>
  void for_each_open(Visit visit) const {
    for (const auto& [pattern, ends] : pending_) {
      std::vector<Key> some;
      if (const auto sources = sources_.find(pattern); sources != sources_.end())
        for (const Key& key : sources->second) {
          if (some.size() == 2) break;
          some.push_back(key);
        }
      for (const End* end : ends) visit(*end, some);
    }
  }

 private:
  static std::array<Key, 3> patterns(const Key& key) {
    return {Key{goal_any, key.tag}, Key{key.source, goal_any}, Key{goal_any, goal_any}};
  }

  std::map<Key, std::uint64_t> left_;
  std::map<Key, std::set<Key>> sources_;      // by pattern
  std::map<Key, std::vector<End*>> pending_;  // by pattern
};

bool is_open(const End& end) { return end.key.source == goal_any || end.key.tag == goal_any; }

// One receiver's messages: `given` sends, `asked` receives.
void Matcher::match_rank(std::span<const End> given, std::span<End> asked) {
  if (std::ranges::any_of(asked, is_open)) {
    std::map<Key, std::uint64_t> left;
    for (const End& send : given) ++left[send.key];
    for (const End& receive : asked)
      if (const auto found = left.find(receive.key); found != left.end() && --found->second == 0)
        left.erase(found);
    Wildcards wildcards(std::move(left));
    for (End& receive : asked)
      if (is_open(receive)) wildcards.add(receive);
    wildcards.run();
    bool open = false;
    wildcards.for_each_open([&](const End& end, const std::vector<Key>& sources) {
      open = true;
      if (sources.empty())
        fault(Errc::value, *end.op, "no message is left for this receive", "add a send");
      else
        fault(Errc::unsupported, *end.op,
              fmt::format("the message matched by this receive depends on timing: {} or {}",
                          sources[0].text(), sources[1].text()),
              "specify its source and tag");
    });
    if (open) return;
    std::ranges::sort(asked, {}, &End::by_key);
  }
  pair(given, asked);
}

// Both sorted by key: the k-th of a key meets the k-th.
void Matcher::pair(std::span<const End> given, std::span<End> asked) {
  std::size_t s = 0, r = 0;
  while (s < given.size() || r < asked.size()) {
    const bool send_left = r == asked.size() || (s < given.size() && given[s].key < asked[r].key);
    const bool receive_left =
        s == given.size() || (r < asked.size() && asked[r].key < given[s].key);
    if (send_left) {
      fault(Errc::value, *given[s].op,
            fmt::format("rank {} has no receive {} for this send", given[s].target,
                        given[s].key.text()),
            "add the receive");
      ++s;
    } else if (receive_left) {
      fault(Errc::value, *asked[r].op,
            fmt::format("no send {} to rank {} for this receive", asked[r].key.text(),
                        asked[r].target),
            "add the send");
      ++r;
    } else {
      GoalOp& receive = *asked[r].op;
      receive.peer = asked[r].key.source;
      receive.tag = asked[r].key.tag;
      resized += receive.size != given[s].op->size ? 1 : 0;
      receive.size = given[s].op->size;
      ++s;
      ++r;
    }
  }
}

}  // namespace

std::uint64_t match_goal(GoalSchedule& schedule, std::vector<GoalFault>& faults) {
  Matcher matcher{.schedule = schedule, .faults = faults};
  matcher.run();
  std::ranges::stable_sort(faults, {}, &GoalFault::at);
  return matcher.resized;
}

}  // namespace weft::workload
