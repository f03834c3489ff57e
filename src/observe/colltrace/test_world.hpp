// For tests: a job with tensor, pipeline and data parallelism that runs into a fault, and the dumps
// its ranks leave. Nothing here is shared with what reads and judges them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/rng.hpp"

namespace weft::observe::colltrace::test {

enum class Fault {
  none,
  stuck,
  stuck_host,
  dead,
  skip,
  order,
  operation,
  size,
  type,
  network,
  slow_rank,
  slow_host,
  slow_network
};

struct World {
  std::uint32_t tensor = 4, stages = 4, replicas = 8;
  int steps = 6, micro_batches = 4;
  Fault fault = Fault::none;
  double factor = 1.3;           // of slow ones
  double missing = 0;            // share of dumps that are lost
  double skew_ms = 5;            // between the moments of dumps, to both sides, while the job runs
  bool has_coarse_times = true;  // starts and ends as a watchdog finds them
  bool has_durations = true;
  std::size_t window = 80;  // entries that a dump holds
};

struct Call {
  std::size_t group = 0;
  std::string name, size, type = "[\"BFloat16\"]";
  double gap_ms = 0.2;  // compute before it
  bool is_async = false;
  std::uint32_t number = 0;  // in its group; sends: among those between the two
  double joined = -1, ended = -1;
  bool is_lost = false;  // joined by all, never ends
};

struct TestGroup {
  std::string name, kind;
  std::vector<std::uint32_t> members;
  double transfer_ms = 1;
};

class Run {
 public:
  Run(const World& world, std::uint64_t seed) : w_(world), rng_(seed) {
    make_groups();
    for (std::uint32_t r = 0; r < ranks(); ++r) programs_.push_back(program_of(r));
    plan_fault();
    execute();
  }

  std::uint32_t ranks() const { return w_.tensor * w_.stages * w_.replicas; }
  std::uint32_t culprit() const { return culprit_; }  // rank; of the network: index of the group
  const TestGroup& group(std::size_t g) const { return groups_[g]; }
  const std::set<std::uint32_t>& lost() const { return lost_; }

  // The dump of a rank, keys in alphabetical order as PyTorch writes them; "" if there is none.
  std::string dump(std::uint32_t rank);

 private:
  using Program = std::vector<Call>;

  std::uint32_t rank_at(std::uint32_t t, std::uint32_t p, std::uint32_t d) const {
    return (d * w_.stages + p) * w_.tensor + t;
  }
  std::size_t add_group(std::string kind, std::vector<std::uint32_t> members, double ms) {
    groups_.push_back({std::to_string(groups_.size()), std::move(kind), std::move(members),
                       ms * (1 + 0.02 * rng_.uniform())});
    return groups_.size() - 1;
  }
  void make_groups() {
    for (std::uint32_t d = 0; d < w_.replicas; ++d)
      for (std::uint32_t p = 0; p < w_.stages; ++p) {
        std::vector<std::uint32_t> m;
        for (std::uint32_t t = 0; t < w_.tensor; ++t) m.push_back(rank_at(t, p, d));
        tensor_[{p, d}] = add_group("tp", m, 0.3);
      }
    for (std::uint32_t p = 0; p < w_.stages; ++p)
      for (std::uint32_t t = 0; t < w_.tensor; ++t) {
        std::vector<std::uint32_t> m;
        for (std::uint32_t d = 0; d < w_.replicas; ++d) m.push_back(rank_at(t, p, d));
        data_[{t, p}] = add_group("dp", m, 4);
      }
    for (std::uint32_t d = 0; d < w_.replicas; ++d)
      for (std::uint32_t t = 0; t < w_.tensor; ++t) {
        std::vector<std::uint32_t> m;
        for (std::uint32_t p = 0; p < w_.stages; ++p) m.push_back(rank_at(t, p, d));
        pipe_[{t, d}] = add_group("pp", m, 0.5);
      }
  }

  void layer(Program& out, std::size_t group, double compute_ms) {
    out.push_back({group, "nccl:_all_gather_base", "[[512,1024]]", "[\"BFloat16\"]", compute_ms});
    out.push_back({group, "nccl:all_reduce", "[[2048,1024]]", "[\"BFloat16\"]", compute_ms});
    out.push_back(
        {group, "nccl:_reduce_scatter_base", "[[2048,1024]]", "[\"BFloat16\"]", compute_ms});
  }
  // From one stage to the next or back, named as members of the pipeline's group.
  void send(Program& out, std::uint32_t rank, std::uint32_t from, std::uint32_t to) {
    const std::uint32_t t = rank % w_.tensor, p = rank / w_.tensor % w_.stages,
                        d = rank / w_.tensor / w_.stages;
    const std::string name = p == from
                                 ? "nccl:send " + std::to_string(from) + "->" + std::to_string(to)
                                 : "nccl:recv " + std::to_string(to) + "<-" + std::to_string(from);
    out.push_back({pipe_[{t, d}], name, "[[2048,1024]]", "[\"BFloat16\"]", 0.05});
  }
  Program program_of(std::uint32_t rank) {
    const std::uint32_t t = rank % w_.tensor, p = rank / w_.tensor % w_.stages,
                        d = rank / w_.tensor / w_.stages;
    Program out;
    for (int step = 0; step < w_.steps; ++step) {
      for (int m = 0; m < w_.micro_batches; ++m) {
        if (p > 0) send(out, rank, p - 1, p);
        layer(out, tensor_[{p, d}], 1);
        if (p + 1 < w_.stages) send(out, rank, p, p + 1);
      }
      for (int m = 0; m < w_.micro_batches; ++m) {
        if (p + 1 < w_.stages) send(out, rank, p + 1, p);
        layer(out, tensor_[{p, d}], 2);
        if (p > 0) send(out, rank, p, p - 1);
      }
      for (int bucket = 0; bucket < 2; ++bucket)
        out.push_back(
            {data_[{t, p}], "nccl:_reduce_scatter_base", "[[8000000]]", "[\"Float\"]", 0.2, true});
      out.push_back({data_[{t, p}], "nccl:_all_gather_base", "[[1000000]]", "[\"BFloat16\"]", 0.5});
    }
    return out;
  }

  void plan_fault() {
    culprit_ = static_cast<std::uint32_t>(rng_.below(ranks()));
    Program& mine = programs_[culprit_];
    // Somewhere in the last step but one, in a collective.
    const auto is_send = [](const Call& c) { return c.name.find(' ') != std::string::npos; };
    std::size_t at =
        mine.size() * static_cast<std::size_t>(w_.steps - 2) / static_cast<std::size_t>(w_.steps) +
        rng_.below(mine.size() / static_cast<std::size_t>(w_.steps));
    while (is_send(mine[at]) || (w_.fault == Fault::order &&
                                 (is_send(mine[at + 1]) || mine[at + 1].name == mine[at].name)))
      --at;
    at_ = at;
    switch (w_.fault) {
      case Fault::skip:
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case Fault::order:
        std::swap(mine[at], mine[at + 1]);
        break;
      case Fault::operation:
        mine[at].name = "nccl:broadcast";
        break;
      case Fault::size:
        mine[at].size = "[[77,1024]]";
        break;
      case Fault::type:
        mine[at].type = "[\"Half\"]";
        break;
      case Fault::network: {
        lost_call_ = {mine[at].group, 0};
        for (std::size_t i = 0; i < at; ++i) lost_call_.second += mine[i].group == mine[at].group;
        culprit_ = static_cast<std::uint32_t>(mine[at].group);
        break;
      }
      case Fault::slow_network: {
        culprit_ = static_cast<std::uint32_t>(data_[{culprit_ % w_.tensor, 0}]);
        groups_[culprit_].transfer_ms *= w_.factor;
        break;
      }
      default:
        break;
    }
    for (std::uint32_t r = 0; r < ranks(); ++r)
      if ((w_.fault == Fault::dead && r == culprit_) ||
          (w_.missing > 0 && rng_.uniform() < w_.missing && r != culprit_))
        lost_.insert(r);
  }
  bool is_stopped(std::uint32_t rank) const {
    if (w_.fault == Fault::stuck_host) return rank / 8 == culprit_ / 8;
    return (w_.fault == Fault::stuck || w_.fault == Fault::dead) && rank == culprit_;
  }
  double pace(std::uint32_t rank) const {
    const bool is_slow = (w_.fault == Fault::slow_rank && rank == culprit_) ||
                         (w_.fault == Fault::slow_host && rank / 8 == culprit_ / 8);
    return is_slow ? w_.factor : 1;
  }

  // Each rank goes through its program; a call ends when all members have come, with equal calls.
  void execute();

  World w_;
  Rng rng_;
  std::vector<TestGroup> groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> tensor_, data_, pipe_;
  std::vector<Program> programs_;
  std::uint32_t culprit_ = 0;
  std::size_t at_ = 0;
  std::pair<std::size_t, std::uint32_t> lost_call_{~std::size_t{0}, 0};
  std::set<std::uint32_t> lost_;
  double end_ms_ = 0;
};

inline void Run::execute() {
  struct Meeting {
    std::vector<std::pair<std::uint32_t, std::size_t>> who;
    double last = 0;
  };
  std::map<std::string, Meeting> meetings;
  std::vector<std::size_t> next(ranks(), 0);
  std::vector<double> free_at(ranks(), 0);
  std::vector<std::map<std::string, std::uint32_t>> numbers(ranks());
  std::vector<double> own(ranks());
  for (double& f : own) f = 1 + 0.012 * rng_.uniform();  // lasting differences between devices
  std::vector<std::uint32_t> ready;
  for (std::uint32_t r = ranks(); r-- > 0;) ready.push_back(r);
  while (!ready.empty()) {
    const std::uint32_t r = ready.back();
    ready.pop_back();
    while (next[r] < programs_[r].size()) {
      if (next[r] >= at_ && is_stopped(r)) break;
      Call& c = programs_[r][next[r]];
      const double jitter = 0.95 + 0.1 * rng_.uniform();
      c.joined = free_at[r] + c.gap_ms * own[r] * pace(r) * jitter;
      std::string key = std::to_string(c.group);
      std::size_t size = groups_[c.group].members.size();
      if (const std::size_t space = c.name.find(' '); space != std::string::npos) {
        const std::string ends = c.name.substr(space + 1);  // "1->2" or "2<-1"
        const std::size_t arrow = ends.find('<');
        key += " " + (arrow == std::string::npos
                          ? ends.substr(0, ends.find('-')) + ">" + ends.substr(ends.find('>') + 1)
                          : ends.substr(arrow + 2) + ">" + ends.substr(0, arrow));
        size = 2;
      }
      c.number = numbers[r][key]++;
      const bool is_lost = lost_call_.first == c.group && c.number >= lost_call_.second && size > 2;
      Meeting& m = meetings[key + "#" + std::to_string(c.number)];
      m.who.emplace_back(r, next[r]);
      m.last = std::max(m.last, c.joined);
      ++next[r];
      free_at[r] = c.joined + 0.01;
      if (m.who.size() == size && !is_lost) {
        bool is_equal = true;
        const Call& first = programs_[m.who[0].first][m.who[0].second];
        for (const auto& [who, i] : m.who) {
          const Call& other = programs_[who][i];
          is_equal = is_equal && (size == 2 || other.name == first.name) &&
                     other.size == first.size && other.type == first.type;
        }
        if (is_equal) {
          const double end = m.last + groups_[c.group].transfer_ms * (0.95 + 0.1 * rng_.uniform());
          for (const auto& [who, i] : m.who) {
            Call& other = programs_[who][i];
            other.ended = end;
            end_ms_ = std::max(end_ms_, end);
            if (!other.is_async) free_at[who] = std::max(free_at[who], end);
            if (who != r && !other.is_async) ready.push_back(who);
          }
        }
      }
      if (c.ended < 0 && !c.is_async) break;
    }
  }
}

inline std::string Run::dump(std::uint32_t rank) {
  if (lost_.contains(rank)) return "";
  // A running job is dumped somewhere in its last step but one; one that is stalled, after its
  // end.
  const bool runs = w_.fault == Fault::none || w_.fault >= Fault::slow_rank;
  Rng rng = rng_.stream(rank);
  const double now = runs ? end_ms_ * 0.83 + w_.skew_ms * (2 * rng.uniform() - 1) : 1e18;
  constexpr std::int64_t epoch = 1'760'000'000'000'000'000;
  const auto ns = [&](double ms) { return epoch + static_cast<std::int64_t>(ms * 1e6); };
  const auto poll = [&](double ms) {
    return w_.has_coarse_times ? (std::floor(ms / 100) + 1) * 100 : ms;
  };
  const Program& program = programs_[rank];
  std::size_t count = 0;
  while (count < program.size() && program[count].joined >= 0 && program[count].joined <= now)
    ++count;
  // The host is ahead of the device by some calls, unless it is the one that is stuck.
  const std::size_t known = std::min(program.size(), count + (is_stopped(rank) ? 0 : rng.below(6)));
  JsonList entries;
  for (std::size_t i = known > w_.window ? known - w_.window : 0; i < known; ++i) {
    const Call& c = program[i];
    const bool has_started = i < count, has_ended = has_started && c.ended >= 0 && c.ended <= now;
    const bool is_send = c.name.find(' ') != std::string::npos;
    JsonObject e;
    e.add("collective_seq_id", is_send ? 0 : c.number + 1);
    if (has_ended && w_.has_durations) e.add("duration_ms", c.ended - c.joined, decimals(4));
    e.add("input_dtypes", JsonText{c.type}).add("input_sizes", JsonText{c.size});
    e.add("is_p2p", is_send).add("op_id", i).add("output_dtypes", JsonText{c.type});
    e.add("output_sizes", JsonText{c.size})
        .add("p2p_seq_id", is_send ? c.number + 1 : 0u)
        .add("pg_id", c.group);
    JsonList group;
    group.add(groups_[c.group].name).add(groups_[c.group].kind);
    e.add("process_group", group)
        .add("profiling_name", c.name)
        .add("record_id", i)
        .add("retired", has_ended);
    e.add("state", std::string_view(has_ended     ? "completed"
                                    : has_started ? "started"
                                                  : "scheduled"));
    const std::int64_t ended = has_ended ? ns(poll(c.ended)) : 0;
    e.add("time_created_ns", ns(c.joined >= 0 ? c.joined - 0.02 : 0))
        .add("time_discovered_completed_ns", ended);
    e.add("time_discovered_started_ns", has_ended && w_.has_coarse_times ? ended
                                        : has_started                    ? ns(c.joined)
                                                                         : 0);
    entries.add(e.add("timeout_ms", 600'000));
  }
  JsonObject config;
  for (const TestGroup& g : groups_)
    if (std::ranges::find(g.members, rank) != g.members.end()) {
      std::string ranks;
      for (const std::uint32_t m : g.members)
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(m);
      config.add(
          g.name,
          JsonObject().add("desc", g.kind).add("name", g.name).add("ranks", "[" + ranks + "]"));
    }
  return JsonObject()
      .add("entries", entries)
      .add("pg_config", config)
      .add("version", std::string_view("2.9"))
      .text();
}

}  // namespace weft::observe::colltrace::test
