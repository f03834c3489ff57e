#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "observe/colltrace/job.hpp"
#include "observe/colltrace/median.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::observe::colltrace {
namespace {

// The group of a communicator: which rank of the job each of its ranks is.
struct Comm {
  std::string name;
  std::int32_t size = 0;
  std::map<std::int32_t, std::uint32_t> known;  // rank in it -> rank of the job
  bool is_twice = false;                        // a rank of it in two processes
  std::optional<std::uint32_t> group;
};

// The ranks that are known lie evenly on a line in all layouts of parallel training: others are on
// it.
std::vector<std::uint32_t> members_of(const Comm& c) {
  std::vector<std::uint32_t> out;
  const auto first = c.known.begin();
  const auto last = std::prev(c.known.end());
  const std::int64_t steps = last->first - first->first;
  const std::int64_t span = std::int64_t{last->second} - first->second;
  const std::int64_t step = steps > 0 && span % steps == 0 ? span / steps : 0;
  bool is_line = step > 0;
  for (const auto& [i, rank] : c.known)
    is_line = is_line && first->second + step * (i - first->first) == rank;
  const bool is_whole = c.known.size() == static_cast<std::size_t>(c.size);
  for (std::int32_t i = 0; i < c.size; ++i) {
    const auto at = c.known.find(i);
    const std::int64_t guess = first->second + step * (i - first->first);
    if (at != c.known.end())
      out.push_back(at->second);
    else if (!is_whole && is_line && guess >= 0 && guess < JobBuilder::rank_max)
      out.push_back(static_cast<std::uint32_t>(guess));
  }
  return out;
}

class RingJob {
 public:
  RingJob(const std::vector<RingTrace>& traces, const std::vector<std::string>& files,
          JobBuilder& job)
      : traces_(traces), files_(files), job_(job) {}

  Status run() {
    find_ranks();
    for (std::size_t i = 0; i < traces_.size(); ++i)
      for (const RingCommunicator& c : traces_[i].communicators) {
        Comm& comm = comms_[c.id];
        comm.name = c.name;
        comm.size = std::clamp(c.rank_count, 0, static_cast<std::int32_t>(JobBuilder::rank_max));
        if (c.rank >= 0 && c.rank < comm.size && !comm.known.emplace(c.rank, ranks_[i]).second)
          comm.is_twice = true;
      }
    for (auto& [id, comm] : comms_) {
      if (comm.known.empty()) continue;
      const std::vector<std::uint32_t> members = members_of(comm);
      comm.group = job_.group(fmt::format("{:016x}", id), comm.name, members);
      if (members.size() < static_cast<std::size_t>(comm.size))
        note("", fmt::format("communicator {:016x}: {} of {} members are not known", id,
                             static_cast<std::size_t>(comm.size) - members.size(), comm.size));
      if (comm.is_twice)
        note("", fmt::format("communicator {:016x}: a rank of it is in two files", id));
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) WEFT_TRY_STATUS(add(i));
    add_edges();
    job_.job().has_measured_times = !traces_.empty();
    return {};
  }

 private:
  void note(const std::string& file, std::string_view text) {
    job_.job().notes.push_back(file.empty() ? std::string(text)
                                            : fmt::format("{}: {}", file, text));
  }

  // By the launcher's numbers if every process has its own, else by the largest communicator.
  void find_ranks() {
    std::vector<std::int32_t> by_launcher, by_comm;
    for (const RingTrace& t : traces_) {
      by_launcher.push_back(t.rank);
      const auto largest =
          std::ranges::max_element(t.communicators, {}, &RingCommunicator::rank_count);
      by_comm.push_back(largest == t.communicators.end() ? -1 : largest->rank);
    }
    const auto are_good = [](std::vector<std::int32_t> ranks) {
      std::ranges::sort(ranks);
      return (ranks.empty() || (ranks.front() >= 0 &&
                                ranks.back() < static_cast<std::int32_t>(JobBuilder::rank_max))) &&
             std::ranges::adjacent_find(ranks) == ranks.end();
    };
    const bool is_by_comm = !are_good(by_launcher) && are_good(by_comm);
    const bool is_bad = !are_good(by_launcher) && !is_by_comm;
    for (std::size_t i = 0; i < traces_.size(); ++i)
      ranks_.push_back(is_bad
                           ? static_cast<std::uint32_t>(i)
                           : static_cast<std::uint32_t>(is_by_comm ? by_comm[i] : by_launcher[i]));
    if (is_bad) note("", "the processes have no ranks: numbered in the order of their files");
  }

  Status add(std::size_t i) {
    const RingTrace& t = traces_[i];
    std::vector<std::uint32_t> order(t.operations.size());
    for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t k) { return t.operations[k].called_ns; });
    std::vector<Entry> entries;
    for (const std::uint32_t k : order)
      if (const auto e = entry_of(t, t.operations[k], ranks_[i])) entries.push_back(*e);
    const auto lost = t.dropped + t.untraced_events + t.untraced_communicators;
    if (lost > 0)
      note(files_[i],
           fmt::format("{} operations dropped, {} events of {} threads and {} "
                       "communicators not traced",
                       t.dropped, t.untraced_events, t.untraced_threads, t.untraced_communicators));
    RankTrace rank{.rank = ranks_[i], .file = files_[i], .host = t.host};
    rank.is_gone = t.is_gone;
    // What a ring has lost of each communicator came before all that it has kept.
    std::map<std::pair<std::uint32_t, bool>, std::uint64_t> first;
    for (const RingOperation& o : t.operations) {
      const std::pair key(o.communicator, o.kind == ring::Kind::p2p);
      const auto [at, is_new] = first.try_emplace(key, o.order);
      at->second = std::min(at->second, o.order);
    }
    for (const auto& [key, order] : first) rank.first_record += order;
    return job_.add(std::move(rank), entries);
  }

  std::optional<Entry> entry_of(const RingTrace& t, const RingOperation& o, std::uint32_t rank) {
    const RingCommunicator& c = t.communicators[o.communicator];
    const Comm& comm = comms_.at(c.id);
    if (!comm.group) return {};
    Entry e{.created_ns = o.called_ns,
            .started_ns = o.started_ns,
            .ended_ns = o.ended_ns,
            .group = *comm.group,
            .seq = static_cast<std::uint32_t>(o.order),
            .duration_us = static_cast<float>(o.device_ns) / 1000};
    using State = RingOperation::State;
    e.state = o.state == State::completed ? EntryState::completed
              : o.state == State::started ? EntryState::started
                                          : EntryState::scheduled;
    const std::string& function = t.names[o.function];
    if (o.kind == ring::Kind::p2p) {
      const auto peer = comm.known.find(o.peer);
      if (peer == comm.known.end()) return {};
      const bool is_send = function == "Send";
      e.group =
          is_send ? job_.pair(e.group, rank, peer->second) : job_.pair(e.group, peer->second, rank);
      e.signature = job_.signature("send") & ((1u << 29) - 1);
    } else {
      e.signature = signature_of(t, o) & ((1u << 29) - 1);
    }
    return e;
  }

  // One call of an edge: what it waited for each byte.
  struct Waited {
    std::int64_t at = 0;
    double log_ns = 0;
    std::size_t kind = 0;  // calls that can be compared
  };

  void add_edges() {
    std::map<EdgeKey, std::vector<Waited>> edges;
    std::map<std::tuple<std::string, std::int32_t, std::uint32_t, std::uint32_t>, std::size_t>
        kinds;
    for (std::size_t i = 0; i < traces_.size(); ++i)
      for (const RingProxy& p : traces_[i].proxies) {
        const RingTrace& t = traces_[i];
        const std::uint64_t wait = p.wait_ns[static_cast<std::size_t>(ring::Wait::send)];
        if (!p.is_send || p.is_open || !p.operation || p.bytes == 0 || wait == 0) continue;
        const RingOperation& o = t.operations[*p.operation];
        const Comm& comm = comms_.at(t.communicators[o.communicator].id);
        const auto peer = comm.known.find(p.peer);
        if (!comm.group || peer == comm.known.end()) continue;
        const auto kind =
            kinds.try_emplace({comm.name, comm.size, signature_of(t, o), p.steps}, kinds.size());
        edges[{*comm.group, ranks_[i], peer->second, p.channel}].push_back(
            {p.begin_ns, std::log(static_cast<double>(wait) / static_cast<double>(p.bytes)),
             kind.first->second});
      }
    std::vector<std::vector<double>> by_kind(kinds.size());
    for (const auto& [key, calls] : edges)
      for (const Waited& w : calls) by_kind[w.kind].push_back(w.log_ns);
    std::vector<double> usual;
    for (std::vector<double>& all : by_kind) usual.push_back(median(all));
    for (auto& [key, calls] : edges) job_.job().edges.push_back(edge_of(key, calls, usual));
  }

  using EdgeKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint8_t>;

  // Of the latest third: a fault may have begun while the ring was filled.
  static EdgeWait edge_of(const EdgeKey& key, std::vector<Waited>& calls,
                          const std::vector<double>& usual) {
    constexpr std::size_t calls_min = 4;
    std::ranges::sort(calls, {}, &Waited::at);
    const std::size_t kept = std::min(calls.size(), std::max(calls_min, calls.size() / 3));
    std::vector<double> over;
    for (const Waited& w : std::span(calls).last(kept)) over.push_back(w.log_ns - usual[w.kind]);
    const auto& [group, from, to, channel] = key;
    return {group,
            from,
            to,
            channel,
            static_cast<std::uint32_t>(kept),
            median(over),
            calls[calls.size() - kept].at};
  }

  std::uint32_t signature_of(const RingTrace& t, const RingOperation& o) {
    return job_.signature(fmt::format("{}\t{}\t{}", t.names[o.function], t.names[o.type], o.count));
  }

  const std::vector<RingTrace>& traces_;
  const std::vector<std::string>& files_;
  JobBuilder& job_;
  std::vector<std::uint32_t> ranks_;
  std::map<std::uint64_t, Comm> comms_;
};

}  // namespace

Status add_rings(const std::vector<RingTrace>& traces, const std::vector<std::string>& files,
                 JobBuilder& job) {
  return RingJob(traces, files, job).run();
}

}  // namespace weft::observe::colltrace
