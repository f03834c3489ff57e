#include "observe/colltrace/dissent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"

namespace weft::observe::colltrace {
namespace {

using Parts = std::vector<HashPart>;  // sorted
using PartKind = HashPart::Kind;

auto order_of(const HashRow& r) {
  return std::tuple(r.run, r.step, r.kind, r.group, r.seq, r.rank, r.place);
}
auto cohort_of(const HashRow& r) { return std::tuple(r.run, r.step, r.kind, r.group, r.seq); }

std::string cohort_text(const HashSet& hashes, const HashRow& r) {
  return fmt::format("step {}, {} {} of group {}{}", r.step, to_text(r.kind), r.seq,
                     hashes.groups[r.group], r.run > 0 ? fmt::format(", run {}", r.run) : "");
}

// Ranks by their places in the rings of a run.
using Rings = std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, std::uint32_t>;

// Members of a cohort, one row each.
class Cohort {
 public:
  Cohort(const HashSet& hashes, const Rings& rings, std::span<const HashRow> rows)
      : hashes_(hashes), rings_(rings), rows_(rows) {}

  // Members whose bytes are equal have one number; the first has 0.
  std::vector<std::uint32_t> classes() const {
    std::vector<std::uint32_t> out;
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;
    for (const HashRow& row : rows_) {
      const auto of = hashes_.of(row);
      out.push_back(known.try_emplace({of.begin(), of.end()}, known.size()).first->second);
    }
    return out;
  }

  bool agrees() const {
    return std::ranges::all_of(rows_.subspan(1), [&](const HashRow& row) {
      return std::ranges::equal(hashes_.of(row), hashes_.of(rows_[0]));
    });
  }

  // What alone can have changed all slices that differ.
  Parts parts() const {
    Parts out;
    bool is_first = true;
    for (std::uint32_t slice = 0; slice < rows_[0].slices; ++slice) {
      const auto labels = labels_of(slice);
      if (labels && std::ranges::count(*labels, false) == std::ssize(*labels)) continue;
      Parts here = labels ? parts_of(*labels, slice) : Parts();
      if (!is_first) {
        Parts both;
        std::ranges::set_intersection(out, here, std::back_inserter(both));
        here = std::move(both);
      }
      out = std::move(here);
      is_first = false;
    }
    return out;
  }

 private:
  // Whether members differ from the first; nothing where there are more than two kinds of bytes.
  std::optional<std::vector<bool>> labels_of(std::uint32_t slice) const {
    std::vector<bool> out;
    std::optional<std::uint64_t> other;
    const std::uint64_t first = hashes_.of(rows_[0])[slice];
    for (const HashRow& row : rows_) {
      const std::uint64_t hash = hashes_.of(row)[slice];
      if (hash != first && hash != other.value_or(hash)) return std::nullopt;
      if (hash != first) other = hash;
      out.push_back(hash != first);
    }
    return out;
  }

  Parts parts_of(const std::vector<bool>& labels, std::uint32_t slice) const {
    Parts out;
    const PartKind kind = rows_[0].kind == HashKind::input ? PartKind::input : PartKind::rank;
    for (const bool label : {false, true})
      if (std::ranges::count(labels, label) == 1)
        out.push_back(
            {kind,
             rows_[static_cast<std::size_t>(std::ranges::find(labels, label) - labels.begin())]
                 .rank});
    if (rows_[0].kind == HashKind::output && rows_[0].size > 0) add_edges(labels, slice, out);
    std::ranges::sort(out);
    return out;
  }

  // Along the ring, those who hold a changed slice are neighbours: the first of them has it over
  // the edge that changed it, and behind the last one is the member where the slice started.
  void add_edges(const std::vector<bool>& labels, std::uint32_t slice, Parts& out) const {
    std::vector<std::size_t> ring(rows_.size());
    for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = i;
    std::ranges::sort(ring, {}, [&](std::size_t i) { return rows_[i].place; });
    struct Change {
      std::uint32_t before, behind;  // places of members that hold other bytes, next to each other
    };
    std::vector<Change> changes;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::size_t next = ring[(i + 1) % ring.size()];
      if (labels[ring[i]] != labels[next])
        changes.push_back({rows_[ring[i]].place, rows_[next].place});
    }
    if (changes.size() != 2) return;
    const std::uint32_t size = rows_[0].size;
    const bool start_is_known = rows_[0].slices == size;
    for (const auto& [enter, leave] : {std::pair(0, 1), std::pair(1, 0)}) {
      const auto [before, behind] = changes[static_cast<std::size_t>(enter)];
      const auto [last, start] = changes[static_cast<std::size_t>(leave)];
      const auto steps = [&](std::uint32_t from, std::uint32_t to) {
        return (to + size - from - 1) % size;  // beyond the first
      };
      if (start_is_known && steps(last, slice) > steps(last, start)) continue;
      for (std::uint32_t i = 0; i <= steps(before, behind); ++i)
        add_edge((before + i) % size, (before + i + 1) % size, out);
    }
  }

  void add_edge(std::uint32_t from, std::uint32_t to, Parts& out) const {
    const auto rank = [&](std::uint32_t place) {
      return rings_.find({rows_[0].run, rows_[0].group, place});
    };
    if (const auto a = rank(from), b = rank(to); a != rings_.end() && b != rings_.end())
      out.push_back({PartKind::edge, a->second, b->second});
  }

  const HashSet& hashes_;
  const Rings& rings_;
  std::span<const HashRow> rows_;
};

// Which ranks dissents have set apart, and how: 0 is like most.
class Diverged {
 public:
  explicit Diverged(std::span<const HashRow> rows) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const HashRow& row : rows)
      if (row.kind == HashKind::input && seen.emplace(row.rank, row.group).second) {
        groups_of_[row.rank].push_back(row.group);
        members_[row.group].push_back(row.rank);
      }
  }

  void set_apart(const Dissent& dissent, std::size_t index) {
    const HashRow& row = dissent.cohort;
    auto& of = row.kind == HashKind::input ? by_input_[{row.run, row.step}] : by_weights_[row.run];
    for (const std::uint32_t rank : dissent.ranks) {
      auto& mark = of.try_emplace(rank, Mark{.first = index}).first->second;
      mark.label = mix64(mark.label + index + 1);
    }
  }

  // The dissent that a cohort's follows from, if members that were alike still are.
  std::optional<std::size_t> cause_of(std::span<const HashRow> rows,
                                      const std::vector<std::uint32_t>& classes) const {
    std::map<std::uint64_t, std::uint32_t> class_of;
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Mark mark = mark_of(rows[i]);
      if (class_of.try_emplace(mark.label, classes[i]).first->second != classes[i])
        return std::nullopt;
      if (mark.label != 0) first = std::min(first.value_or(mark.first), mark.first);
    }
    return first;
  }

  // The ranks that read what the rank reads, and itself.
  std::set<std::uint32_t> replica_of(std::uint32_t rank) const {
    std::set<std::uint32_t> out{rank};
    if (const auto at = groups_of_.find(rank); at != groups_of_.end())
      for (const std::uint32_t group : at->second)
        out.insert(members_.at(group).begin(), members_.at(group).end());
    return out;
  }

 private:
  struct Mark {
    std::uint64_t label = 0;
    std::size_t first = 0;
  };
  using Marks = std::map<std::uint32_t, Mark>;  // by rank

  // What a rank computes depends on the weights and inputs of all ranks of its replica.
  Mark mark_of(const HashRow& row) const {
    Mark out;
    const bool is_compute = row.kind == HashKind::compute;
    const auto replica = is_compute ? replica_of(row.rank) : std::set{row.rank};
    const auto add = [&](const Marks& marks) {
      for (const std::uint32_t rank : replica) {
        const auto at = marks.find(rank);
        if (at == marks.end()) continue;
        const Mark& mark = at->second;
        out.first = out.label == 0 ? mark.first : std::min(out.first, mark.first);
        out.label += mark.label;
      }
    };
    if (const auto at = by_weights_.find(row.run); at != by_weights_.end()) add(at->second);
    if (const auto at = by_input_.find({row.run, row.step}); is_compute && at != by_input_.end())
      add(at->second);
    return out;
  }

  std::map<std::uint64_t, Marks> by_weights_;                          // by run
  std::map<std::pair<std::uint64_t, std::uint64_t>, Marks> by_input_;  // by run and step
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> groups_of_, members_;  // of inputs
};

class Finder {
 public:
  explicit Finder(const HashSet& hashes)
      : hashes_(hashes), rows_(hashes.rows), diverged_(hashes.rows) {
    std::ranges::stable_sort(rows_, {}, order_of);
  }

  Result<HashReport> run() {
    WEFT_TRY_STATUS(drop_repeats());
    std::set<std::uint32_t> ranks;
    std::set<std::pair<std::uint64_t, std::uint64_t>> steps;
    for (const HashRow& row : rows_) {
      ranks.insert(row.rank);
      steps.emplace(row.run, row.step);
      if (row.size > 0) rings_.try_emplace({row.run, row.group, row.place}, row.rank);
    }
    out_.ranks = ranks.size();
    out_.steps = steps.size();
    out_.rows = rows_.size();
    for (std::size_t begin = 0, end = 0; begin < rows_.size(); begin = end) {
      while (end < rows_.size() && cohort_of(rows_[end]) == cohort_of(rows_[begin])) ++end;
      WEFT_TRY_STATUS(look_at(std::span(rows_).subspan(begin, end - begin)));
    }
    explain();
    accuse();
    return std::move(out_);
  }

 private:
  Status refuse(const HashRow& row, std::string what, std::string hint) const {
    return fail(Errc::value, {},
                fmt::format("rank {}, {}: {}", row.rank, cohort_text(hashes_, row), what),
                std::move(hint));
  }

  Status drop_repeats() {
    std::vector<HashRow> kept;
    for (const HashRow& row : rows_) {
      if (kept.empty() || cohort_of(kept.back()) != cohort_of(row) ||
          kept.back().rank != row.rank) {
        kept.push_back(row);
      } else if (!std::ranges::equal(hashes_.of(kept.back()), hashes_.of(row)) ||
                 kept.back().place != row.place || kept.back().size != row.size) {
        return refuse(row, "two different hashes", "number restarts of the job by the column run");
      }
    }
    rows_ = std::move(kept);
    return {};
  }

  Status check_shape(std::span<const HashRow> rows) const {
    std::set<std::uint32_t> places;
    for (const HashRow& row : rows) {
      if (row.slices != rows[0].slices)
        return refuse(row, fmt::format("{} hashes, others have {}", row.slices, rows[0].slices),
                      "hash as many slices on all ranks");
      if (row.size != rows[0].size)
        return refuse(row, fmt::format("size {}, others have {}", row.size, rows[0].size),
                      "write the number of the group's members");
      if (row.size > 0 && !places.insert(row.place).second)
        return refuse(row, fmt::format("place {} is another rank's too", row.place),
                      "give each member its own place in the ring");
    }
    return {};
  }

  Status look_at(std::span<const HashRow> rows) {
    ++out_.cohorts;
    WEFT_TRY_STATUS(check_shape(rows));
    if (rows[0].size > 0) out_.missing += rows[0].size - rows.size();
    if (rows.size() == 1) ++out_.alone;
    const Cohort cohort(hashes_, rings_, rows);
    if (cohort.agrees()) return {};
    Differing differing{.rows = rows, .classes = cohort.classes()};
    std::vector<std::size_t> sizes(1 + std::ranges::max(differing.classes));
    for (const std::uint32_t c : differing.classes) ++sizes[c];
    const auto most = std::ranges::max_element(sizes) - sizes.begin();
    Dissent dissent{
        .cohort = rows[0], .ranks = {}, .members = rows.size(), .parts = cohort.parts()};
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (differing.classes[i] != static_cast<std::uint32_t>(most))
        dissent.ranks.push_back(rows[i].rank);
    out_.dissents.push_back(std::move(dissent));
    differing_.push_back(std::move(differing));
    return {};
  }

  // Inputs and outputs differ by themselves; weights, because earlier ones of the run did. What was
  // computed last: weights may be found to differ after that.
  void explain() {
    for (const bool is_compute : {false, true})
      for (std::size_t i = 0; i < out_.dissents.size(); ++i) {
        Dissent& d = out_.dissents[i];
        const HashKind kind = d.cohort.kind;
        if ((kind == HashKind::compute) != is_compute) continue;
        if (kind == HashKind::weights || is_compute)
          d.follows = diverged_.cause_of(differing_[i].rows, differing_[i].classes);
        if (d.follows)
          d.parts.clear();
        else if (!is_compute)
          diverged_.set_apart(d, i);
      }
    join_replicas();
  }

  // Where several ranks of a replica computed something else at once, any of them may have begun.
  void join_replicas() {
    auto& all = out_.dissents;
    const auto same_step = [](const Dissent& a, const Dissent& b) {
      return a.cohort.run == b.cohort.run && a.cohort.step == b.cohort.step &&
             a.cohort.kind == HashKind::compute && b.cohort.kind == HashKind::compute;
    };
    for (auto begin = all.begin(), end = begin; begin != all.end(); begin = end) {
      end = std::ranges::find_if_not(begin + 1, all.end(),
                                     [&](const Dissent& d) { return same_step(*begin, d); });
      std::set<std::uint32_t> seen;
      for (const Dissent& d : std::ranges::subrange(begin, end))
        for (const HashPart& part : d.parts) seen.insert(part.rank);
      if (begin->cohort.kind != HashKind::compute) continue;
      for (Dissent& d : std::ranges::subrange(begin, end)) {
        std::set<HashPart> parts;
        for (const HashPart& part : d.parts)
          for (const std::uint32_t rank : diverged_.replica_of(part.rank))
            if (seen.contains(rank)) parts.insert({PartKind::rank, rank});
        d.parts.assign(parts.begin(), parts.end());
      }
    }
  }

  struct Worth {
    std::vector<std::size_t> explains;  // dissents
    std::size_t exactly = 0;            // of these, in whose parts it is
    auto operator<=>(const Worth& other) const {
      return std::pair(explains.size(), exactly) <=>
             std::pair(other.explains.size(), other.exactly);
    }
  };

  std::map<HashPart, Worth> worths(const std::vector<std::size_t>& open) const {
    std::map<HashPart, Worth> out;
    for (const std::size_t i : open) {
      const Parts& parts = out_.dissents[i].parts;
      std::set<HashPart> all(parts.begin(), parts.end());
      for (const HashPart& part : parts) {
        if (part.kind != PartKind::edge) continue;
        all.insert({PartKind::rank, part.rank});
        all.insert({PartKind::rank, part.to});
      }
      for (const HashPart& part : all) {
        out[part].explains.push_back(i);
        out[part].exactly += std::ranges::binary_search(parts, part) ? 1 : 0;
      }
    }
    return out;
  }

  void accuse() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < out_.dissents.size(); ++i)
      if (!out_.dissents[i].parts.empty()) open.push_back(i);
    while (!open.empty() && out_.accused.size() < accused_max) {
      const auto worth = worths(open);
      const auto best = std::ranges::max_element(
          worth, [](const Worth& a, const Worth& b) { return (a <=> b) < 0; },
          &std::pair<const HashPart, Worth>::second);
      Accused accused{.part = best->first, .or_else = {}, .dissents = best->second.explains};
      for (const auto& [part, its] : worth)
        if (part != best->first && its.exactly == best->second.exactly &&
            its.explains == best->second.explains)
          accused.or_else.push_back(part);
      std::erase_if(open,
                    [&](std::size_t i) { return std::ranges::binary_search(accused.dissents, i); });
      out_.accused.push_back(std::move(accused));
    }
  }

  struct Differing {
    std::span<const HashRow> rows;
    std::vector<std::uint32_t> classes;
  };

  const HashSet& hashes_;
  std::vector<HashRow> rows_;
  std::vector<Differing> differing_;  // for each dissent
  Diverged diverged_;
  Rings rings_;
  HashReport out_;
};

std::string_view cause_text(PartKind kind) {
  return kind == PartKind::edge ? "edge" : kind == PartKind::input ? "input" : "rank";
}

}  // namespace

std::string to_text(const HashPart& part) {
  if (part.kind == PartKind::edge) return fmt::format("edge {} -> {}", part.rank, part.to);
  return fmt::format("{}rank {}", part.kind == PartKind::input ? "input of " : "", part.rank);
}

Result<HashReport> find_dissent(const HashSet& hashes) { return Finder(hashes).run(); }

model::RecordSet to_records(const model::Fabric& fabric, const HashSet& hashes,
                            std::span<const model::NodeId> hosts, std::string_view job_name,
                            const HashReport& report) {
  model::RecordSet out;
  for (const Accused& accused : report.accused) {
    std::set<model::NodeId> on;
    std::string names;
    const auto add = [&](const HashPart& part) {
      for (const std::uint32_t rank :
           {part.rank, part.kind == PartKind::edge ? part.to : part.rank})
        on.insert(rank < hosts.size() ? hosts[rank] : model::NodeId());
      names += (names.empty() ? "" : " or ") + to_text(part);
    };
    add(accused.part);
    for (const HashPart& part : accused.or_else) add(part);
    if (on.size() != 1 || !on.begin()->valid()) continue;
    model::Record row;
    row.t = row.until = row.received = hashes.last;
    row.entity = model::entity(*on.begin());
    row.kind = model::EventKind::corruption;
    row.source = model::Source::colltrace;
    row.value = static_cast<double>(accused.dissents.size());
    row.id = out.add_id(
        fmt::format("job:{}/{}/{}/{}", job_name, name(fabric, row.entity), names, row.t.ns));
    const Dissent& first = report.dissents[accused.dissents.front()];
    row.attrs = out.add_attributes(
        {{"job", std::string(job_name)},
         {"cause", std::string(cause_text(accused.part.kind))},
         {"message", fmt::format("replicas of job {} differ by {}, first at {}", job_name, names,
                                 cohort_text(hashes, first.cohort))}});
    out.rows.push_back(row);
  }
  return out;
}

}  // namespace weft::observe::colltrace
