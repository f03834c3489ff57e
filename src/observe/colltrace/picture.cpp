#include "observe/colltrace/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/json_text.hpp"

namespace weft::observe::colltrace {
namespace {

std::string kind_of(const Job& job, std::uint32_t group) {
  const Group& g = job.groups[group];
  const std::string name = g.description.empty() ? "groups" : g.description;
  return g.is_pair ? name + " sends" : name;
}

std::int64_t begin_of(const Entry& e) {
  // Watchdogs that look now and then find start and end at once.
  const bool has_start = e.started_ns != 0 && (e.ended_ns == 0 || e.started_ns < e.ended_ns);
  return has_start || e.created_ns == 0 ? e.started_ns : e.created_ns;
}
bool is_open(const Entry& e) { return e.state == EntryState::started && e.is_aside == 0; }

std::int64_t latest_of(const Job& job) {
  std::int64_t out = 0;
  for (const Entry& e : job.entries) out = std::max({out, e.created_ns, e.started_ns, e.ended_ns});
  return out;
}

class Waits {
 public:
  Waits(const Job& job, const Report& report) : job_(job), report_(report) {}

  void fill(Picture& out) {
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) kind_[g] = index_of(kind_of(job_, g));
    by_rank_.assign(names_.size(), std::vector<double>(job_.world, -1));
    out.is_share = !report_.is_hang;
    if (report_.is_hang)
      add_open();
    else
      add_shares();
    while (job_.world > out.ranks_per_cell * wait_cells_max) out.ranks_per_cell *= 2;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      if (std::ranges::all_of(by_rank_[k], [](double wait) { return wait < 0; })) continue;
      WaitRow row{.kind = names_[k], .cells = {}};
      for (std::uint32_t from = 0; from < job_.world; from += out.ranks_per_cell) {
        const auto count = std::min(out.ranks_per_cell, job_.world - from);
        row.cells.push_back(std::ranges::max(std::span(by_rank_[k]).subspan(from, count)));
      }
      out.waits.push_back(std::move(row));
    }
  }

 private:
  std::size_t index_of(const std::string& name) {
    const auto [at, is_new] = known_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return at->second;
  }

  void add_open() {
    const std::int64_t now = latest_of(job_);
    for (const RankTrace& r : job_.ranks) {
      if (r.is_gone) continue;
      for (const Entry& e : r.in(job_.entries)) {
        double& wait = by_rank_[kind_[e.group]][r.rank];
        wait = std::max(wait, 0.0);
        if (is_open(e) && begin_of(e) != 0)
          wait = std::max(wait, static_cast<double>(now - begin_of(e)) * 1e-9);
      }
    }
  }

  void add_shares() {
    // The shortest of each operation is its transfer.
    std::unordered_map<std::uint64_t, std::pair<float, std::uint32_t>> shortest;
    const auto key = [](const Entry& e) { return std::uint64_t{e.group} << 32 | e.seq; };
    const auto is_measured = [](const Entry& e) {
      return e.state == EntryState::completed && e.duration_us > 0 && e.is_aside == 0;
    };
    for (const Entry& e : job_.entries) {
      if (!is_measured(e)) continue;
      auto& [least, members] = shortest.try_emplace(key(e), e.duration_us, 0).first->second;
      least = std::min(least, e.duration_us);
      ++members;
    }
    for (const RankTrace& r : job_.ranks) {
      const auto entries = r.in(job_.entries);
      std::int64_t first = 0, last = 0;
      for (const Entry& e : entries) {
        if (!is_measured(e)) continue;
        if (first == 0 || begin_of(e) < first) first = begin_of(e);
        last = std::max(last, e.ended_ns);
      }
      if (first == 0 || last <= first) continue;
      for (const Entry& e : entries) {
        if (!is_measured(e)) continue;
        const auto& [least, members] = shortest.at(key(e));
        if (members < 2) continue;
        double& wait = by_rank_[kind_[e.group]][r.rank];
        wait = std::max(wait, 0.0) +
               1000.0 * (e.duration_us - least) / static_cast<double>(last - first);
      }
    }
  }

  const Job& job_;
  const Report& report_;
  std::map<std::uint32_t, std::size_t> kind_;  // by group
  std::map<std::string, std::size_t> known_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> by_rank_;  // by kind
};

class Graph {
 public:
  Graph(const Job& job, const Report& report) : job_(job), report_(report), in_(job.world) {
    for (std::size_t w = 0; w < report.waits.size(); ++w)
      for (const std::uint32_t rank : report.waits[w].joined) in_[rank].push_back(w);
  }

  void fill(Picture& out) {
    if (!report_.is_hang) return;
    find_levels();
    const std::size_t roots = add_roots(out);
    std::map<std::pair<std::uint32_t, std::string>, std::size_t> known;
    std::vector<std::size_t> node(report_.waits.size());
    std::vector<std::set<std::uint32_t>> ranks(roots);
    for (std::size_t w = 0; w < report_.waits.size(); ++w) {
      if (level_[w] == 0) {
        ++out.unconnected;
        continue;
      }
      const Blocked& wait = report_.waits[w];
      const std::string kind = kind_of(job_, wait.group);
      const auto [at, is_new] = known.try_emplace({level_[w], kind}, 0);
      if (is_new) {
        at->second = out.nodes.size();
        out.nodes.push_back({.title = kind, .example = operation_of(wait), .level = level_[w]});
        ranks.emplace_back();
      }
      node[w] = at->second;
      ++out.nodes[node[w]].groups;
      ranks[node[w]].insert(wait.joined.begin(), wait.joined.end());
    }
    for (std::size_t n = roots; n < out.nodes.size(); ++n) out.nodes[n].ranks = ranks[n].size();
    add_edges(out, node);
  }

 private:
  bool names(const Verdict& v, const Blocked& wait) const {
    if (v.ranks.empty() || wait.absent.empty())
      return v.seq == wait.seq && std::ranges::find(v.groups, wait.group) != v.groups.end();
    return std::ranges::any_of(wait.absent, [&](std::uint32_t rank) {
      return std::ranges::find(v.ranks, rank) != v.ranks.end();
    });
  }

  void find_levels() {
    level_.assign(report_.waits.size(), 0);
    std::vector<std::size_t> now;
    for (std::size_t w = 0; w < report_.waits.size(); ++w)
      if (std::ranges::any_of(report_.verdicts,
                              [&](const Verdict& v) { return names(v, report_.waits[w]); }))
        now.push_back(w);
    for (std::size_t w : now) level_[w] = 1;
    // Operations by the ranks that they lack.
    std::vector<std::vector<std::size_t>> lacks(job_.world);
    for (std::size_t w = 0; w < report_.waits.size(); ++w)
      for (const std::uint32_t rank : report_.waits[w].absent) lacks[rank].push_back(w);
    for (std::uint32_t level = 2; !now.empty(); ++level) {
      std::vector<std::size_t> next;
      for (const std::size_t w : now)
        for (const std::uint32_t rank : report_.waits[w].joined)
          for (const std::size_t other : lacks[rank])
            if (level_[other] == 0) {
              level_[other] = level;
              next.push_back(other);
            }
      now = std::move(next);
    }
  }

  std::size_t add_roots(Picture& out) const {
    constexpr std::size_t roots_max = 8;
    for (const Verdict& v : report_.verdicts) {
      if (out.nodes.size() == roots_max) break;
      std::string who;
      for (std::size_t i = 0; i < std::min<std::size_t>(4, v.ranks.size()); ++i)
        who += fmt::format("{}{}", i == 0 ? "" : ", ", v.ranks[i]);
      if (v.ranks.size() > 4) who += fmt::format(" and {} more", v.ranks.size() - 4);
      const std::string title =
          v.ranks.empty()
              ? fmt::format("group {}: {}", job_.groups[v.groups.front()].name, to_text(v.finding))
              : fmt::format("rank{} {}: {}", v.ranks.size() == 1 ? "" : "s", who,
                            to_text(v.finding));
      out.nodes.push_back({.title = title,
                           .example = v.operation,
                           .level = 0,
                           .groups = 0,
                           .ranks = v.ranks.size()});
    }
    return out.nodes.size();
  }

  void add_edges(Picture& out, const std::vector<std::size_t>& node) const {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> count;
    for (std::size_t w = 0; w < report_.waits.size(); ++w) {
      if (level_[w] == 0) continue;
      const Blocked& wait = report_.waits[w];
      std::set<std::size_t> targets;
      for (std::size_t v = 0; level_[w] == 1 && v < report_.verdicts.size(); ++v)
        if (out.nodes.size() > v && out.nodes[v].level == 0 && names(report_.verdicts[v], wait))
          targets.insert(v);
      for (const std::uint32_t rank : wait.absent)
        for (const std::size_t other : in_[rank])
          if (level_[other] + 1 == level_[w]) targets.insert(node[other]);
      for (const std::size_t to : targets) ++count[{node[w], to}];
    }
    for (const auto& [ends, groups] : count) {
      out.edges.push_back({.from = ends.first, .to = ends.second, .groups = groups});
      if (WaitNode& to = out.nodes[ends.second]; to.level == 0) to.groups += groups;
    }
  }

  std::string operation_of(const Blocked& wait) const {
    const Group& g = job_.groups[wait.group];
    for (const std::uint32_t rank : wait.joined)
      for (const RankTrace& r : job_.ranks)
        if (r.rank == rank)
          for (const Entry& e : r.in(job_.entries))
            if (e.group == wait.group && e.seq == wait.seq)
              return fmt::format("group {}, operation {}: {}", g.name, wait.seq,
                                 job_.signatures[e.signature].operation);
    return fmt::format("group {}, operation {}", g.name, wait.seq);
  }

  const Job& job_;
  const Report& report_;
  std::vector<std::vector<std::size_t>> in_;  // rank -> waits that it is in
  std::vector<std::uint32_t> level_;          // of waits; 0: leads to no verdict
};

class TimeLine {
 public:
  TimeLine(const Job& job, const Report& report) : job_(job), report_(report) {
    for (std::uint32_t i = 0; i < job.ranks.size(); ++i) trace_[job.ranks[i].rank] = i;
    for (const Verdict& v : report.verdicts) named_.insert(v.ranks.begin(), v.ranks.end());
  }

  void fill(Picture& out) {
    const auto verdict = std::ranges::find_if(
        report_.verdicts, [](const Verdict& v) { return !v.groups.empty() || !v.ranks.empty(); });
    if (verdict == report_.verdicts.end()) return;
    if (const auto group = group_of(*verdict); group)
      group_ = *group;
    else
      return;
    seq_ = report_.is_hang ? verdict->seq : last_seq();
    choose_rows(out);
    if (!choose_window(out)) {
      out.rows.clear();
      return;
    }
    const Group& g = job_.groups[group_];
    out.blocked = fmt::format("group {}{}, operation {}{}", g.name,
                              g.description.empty() ? "" : " (" + g.description + ")", seq_,
                              verdict->operation.empty() ? "" : ": " + verdict->operation);
    for (TimeRow& row : out.rows)
      if (row.has_trace) add_spans(row, out);
  }

 private:
  const RankTrace* trace_of(std::uint32_t rank) const {
    const auto at = trace_.find(rank);
    return at == trace_.end() ? nullptr : &job_.ranks[at->second];
  }

  // Where the others wait, or the largest group of a slow rank.
  std::optional<std::uint32_t> group_of(const Verdict& v) const {
    if (!v.groups.empty()) return v.groups.front();
    std::optional<std::uint32_t> out;
    const RankTrace* trace = trace_of(v.ranks.front());
    if (trace == nullptr) return {};
    for (const Entry& e : trace->in(job_.entries))
      if (!out || job_.groups[e.group].members.size() > job_.groups[*out].members.size())
        out = e.group;
    return out;
  }

  std::uint32_t last_seq() const {
    std::uint32_t out = 0;
    for (const std::uint32_t rank : job_.groups[group_].members)
      if (const RankTrace* trace = trace_of(rank))
        for (const Entry& e : trace->in(job_.entries))
          if (e.group == group_ && e.state == EntryState::completed) out = std::max(out, e.seq);
    return out;
  }

  void choose_rows(Picture& out) const {
    std::vector<std::uint32_t> members = job_.groups[group_].members;
    std::ranges::stable_partition(members, [&](auto rank) { return named_.contains(rank); });
    const auto named = static_cast<std::size_t>(
        std::ranges::count_if(members, [&](auto rank) { return named_.contains(rank); }));
    const std::size_t first = std::min(named, time_rows_max);
    const std::size_t rest = members.size() - first;
    const std::size_t shown = std::min(rest, time_rows_max - first);
    for (std::size_t i = 0; i < first + shown; ++i) {
      const std::uint32_t rank =
          members[i < first ? i : first + (i - first) * rest / std::max<std::size_t>(shown, 1)];
      out.rows.push_back({.rank = rank,
                          .is_named = named_.contains(rank),
                          .has_trace = trace_of(rank) != nullptr,
                          .spans = {}});
    }
    out.rows_left_out = members.size() - out.rows.size();
  }

  // The time since the operation was called, or a named rank ended its last one, fills the last
  // three fifths; of a job that runs, the last operations are
  // shown.
  bool choose_window(Picture& out) {
    end_ = 0;
    std::int64_t called = 0, first = 0, idle = 0;
    std::vector<std::int64_t> begins;
    for (const TimeRow& row : out.rows) {
      const RankTrace* trace = trace_of(row.rank);
      if (trace == nullptr) continue;
      std::int64_t last = 0;  // of a named rank that waits nowhere
      for (const Entry& e : trace->in(job_.entries)) {
        if (begin_of(e) == 0) continue;
        last = std::max(last, e.ended_ns);
        end_ = std::max({end_, e.created_ns, e.started_ns, e.ended_ns});
        first = first == 0 ? begin_of(e) : std::min(first, begin_of(e));
        if (e.group == group_ && e.seq == seq_)
          called = called == 0 ? begin_of(e) : std::min(called, begin_of(e));
        if (e.group == group_ && e.seq <= seq_) begins.push_back(begin_of(e));
      }
      if (report_.is_hang && row.is_named && last != 0)
        idle = idle == 0 ? last : std::min(idle, last);
    }
    if (called == 0) return false;
    constexpr std::size_t operations_shown = 6;
    if (report_.is_hang) {
      if (idle != 0) called = std::min(called, idle);
      end_ = std::max(end_, latest_of(job_));
      begin_ = called - std::max<std::int64_t>((end_ - called) / 3 * 2, 1000);
    } else {
      std::ranges::sort(begins, std::ranges::greater());
      const std::size_t at = std::min(begins.size() - 1, operations_shown * out.rows.size());
      begin_ = begins[at];
    }
    begin_ = std::max(begin_, first);
    out.window_s = static_cast<double>(end_ - begin_) * 1e-9;
    return end_ > begin_;
  }

  void add_spans(TimeRow& row, Picture& out) {
    const auto entries = trace_of(row.rank)->in(job_.entries);
    for (std::size_t i = entries.size(); i-- > 0 && row.spans.size() < time_spans_max;) {
      const Entry& e = entries[i];
      const std::int64_t begin = begin_of(e);
      const std::int64_t end = is_open(e) ? end_ : e.ended_ns;
      if (e.is_aside != 0 || begin == 0 || end < begin_ || begin > end_) continue;
      row.spans.push_back(
          {.begin_s = static_cast<double>(std::max(begin, begin_) - begin_) * 1e-9,
           .end_s = static_cast<double>(std::min(std::max(end, begin), end_) - begin_) * 1e-9,
           .kind = index_of(kind_of(job_, e.group), out.kinds, known_kinds_),
           .operation =
               index_of(job_.signatures[e.signature].operation, out.operations, known_operations_),
           .seq = e.seq,
           .is_open = is_open(e),
           .is_blocked = e.group == group_ && e.seq == seq_});
    }
    std::ranges::reverse(row.spans);
  }

  using Known = std::map<std::string, std::uint32_t>;
  static std::uint32_t index_of(const std::string& name, std::vector<std::string>& names,
                                Known& known) {
    const auto [at, is_new] = known.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(name);
    return at->second;
  }

  const Job& job_;
  const Report& report_;
  std::unordered_map<std::uint32_t, std::uint32_t> trace_;  // rank -> index into job.ranks
  std::set<std::uint32_t> named_;
  std::uint32_t group_ = 0, seq_ = 0;
  std::int64_t begin_ = 0, end_ = 0;
  Known known_kinds_, known_operations_;
};

JsonList verdicts_json(const Job& job, const Report& report) {
  JsonList out;
  for (const Verdict& v : report.verdicts) {
    JsonList groups;
    for (std::size_t i = 0; i < std::min<std::size_t>(v.groups.size(), 3); ++i)
      groups.add(job.groups[v.groups[i]].name);
    out.add(JsonObject()
                .add("finding", to_text(v.finding))
                .add("meaning", meaning(v.finding))
                .add("ranks", v.ranks)
                .add("groups", groups)
                .add("group_count", v.groups.size())
                .add("seq", v.seq)
                .add("operation", v.operation)
                .add("expected", v.expected)
                .add("found", v.found)
                .add("factor", v.factor, digits(4)));
  }
  return out;
}

JsonObject timeline_json(const Picture& picture) {
  JsonList rows;
  for (const TimeRow& row : picture.rows) {
    JsonList spans;
    for (const TimeSpan& s : row.spans)
      spans.add(JsonObject()
                    .add("begin", s.begin_s, digits(9))
                    .add("end", s.end_s, digits(9))
                    .add("kind", s.kind)
                    .add("operation", s.operation)
                    .add("seq", s.seq)
                    .add("open", s.is_open)
                    .add("blocked", s.is_blocked));
    rows.add(JsonObject()
                 .add("rank", row.rank)
                 .add("named", row.is_named)
                 .add("traced", row.has_trace)
                 .add("spans", spans));
  }
  return JsonObject()
      .add("operation", picture.blocked)
      .add("window_s", picture.window_s, digits(9))
      .add("kinds", picture.kinds)
      .add("operations", picture.operations)
      .add("rows", rows)
      .add("left_out", picture.rows_left_out);
}

}  // namespace

Picture make_picture(const Job& job, const Report& report) {
  Picture out;
  Waits(job, report).fill(out);
  Graph(job, report).fill(out);
  TimeLine(job, report).fill(out);
  return out;
}

std::string to_json(const Picture& picture, const Job& job, const Report& report) {
  JsonList waits, nodes, edges;
  for (const WaitRow& row : picture.waits) {
    JsonList cells;
    for (const double cell : row.cells) cells.add(cell, digits(4));
    waits.add(JsonObject().add("kind", row.kind).add("cells", cells));
  }
  for (const WaitNode& n : picture.nodes)
    nodes.add(JsonObject()
                  .add("title", n.title)
                  .add("example", n.example)
                  .add("level", n.level)
                  .add("groups", n.groups)
                  .add("ranks", n.ranks));
  for (const WaitEdge& e : picture.edges)
    edges.add(JsonObject().add("from", e.from).add("to", e.to).add("groups", e.groups));
  return JsonObject()
      .add("world", job.world)
      .add("ranks", report.rank_count)
      .add("missing", report.missing_count)
      .add("operations", report.entry_count)
      .add("waiting", report.waiting_count)
      .add("hang", report.is_hang)
      .add("verdicts", verdicts_json(job, report))
      .add("waits", JsonObject()
                        .add("ranks_per_cell", picture.ranks_per_cell)
                        .add("share", picture.is_share)
                        .add("rows", waits))
      .add("graph", JsonObject()
                        .add("nodes", nodes)
                        .add("edges", edges)
                        .add("unconnected", picture.unconnected))
      .add("timeline", timeline_json(picture))
      .text();
}

}  // namespace weft::observe::colltrace
