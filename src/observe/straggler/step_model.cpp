#include "observe/straggler/step_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "base/text.hpp"

namespace weft::observe::straggler {

// Reads the model off the first step of the first replica.
class ModelReader {
 public:
  ModelReader(const Timeline& timeline, const std::string& file) : t_(timeline), file_(file) {
    for (std::uint32_t i = 0; i < t_.ops.size(); ++i) number_of_.emplace(t_.ops[i], i);
    model_.before_.resize(t_.ops.size());
    model_.group_of_.assign(t_.ops.size(), StepModel::alone);
  }

  Result<StepModel> read() {
    for (std::uint32_t stage = 0; stage < t_.stage_count; ++stage) {
      const auto computes = of(stage, {Kind::forward_compute, Kind::backward_compute});
      chain(computes);
      for (const Kind kind :
           {Kind::forward_send, Kind::forward_recv, Kind::backward_send, Kind::backward_recv})
        WEFT_TRY_STATUS(add_transfers(stage, kind));
      wait_for_warm_up(stage, computes);
      add_ends(stage, computes);
    }
    WEFT_TRY_STATUS(join_ends());
    WEFT_TRY_STATUS(sort());
    return std::move(model_);
  }

 private:
  using Ops = std::vector<std::uint32_t>;

  std::unexpected<Error> refuse(std::string what) const {
    return fail(Errc::infeasible, {file_, 0, 0}, std::move(what),
                "weft straggler reads pipelines without interleaving (docs/commands/straggler.md)");
  }
  static std::string text(const Op& op) {
    return fmt::format("{} {} of stage {}", to_text(op.kind), op.seq, op.stage);
  }

  std::optional<std::uint32_t> find(const Op& op) const {
    const auto it = number_of_.find(op);
    return it == number_of_.end() ? std::nullopt : std::optional(it->second);
  }

  // In order of start; then of sequence and name.
  Ops of(std::uint32_t stage, std::initializer_list<Kind> kinds) const {
    Ops out;
    for (std::uint32_t i = 0; i < t_.ops.size(); ++i)
      if (t_.ops[i].stage == stage && std::ranges::find(kinds, t_.ops[i].kind) != kinds.end())
        out.push_back(i);
    std::ranges::sort(out, {}, [&](std::uint32_t i) {
      return std::tuple(t_.start_s[i], t_.ops[i].seq, t_.ops[i].kind);
    });
    return out;
  }

  void wait(std::uint32_t op, std::uint32_t before) { model_.before_[op].push_back(before); }
  void chain(const Ops& ops) {
    for (std::size_t i = 1; i < ops.size(); ++i) wait(ops[i], ops[i - 1]);
  }

  // The i-th transfer of its kind is that of micro-batch i.
  Status add_transfers(std::uint32_t stage, Kind kind) {
    const bool is_forward = kind == Kind::forward_send || kind == Kind::forward_recv;
    const bool is_send = kind == Kind::forward_send || kind == Kind::backward_send;
    const Kind compute = is_forward ? Kind::forward_compute : Kind::backward_compute;
    const Ops ops = of(stage, {kind});
    chain(ops);
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const auto own = find({stage, compute, i});
      if (!own)
        return refuse(fmt::format("{} has no {} {}", text(t_.ops[ops[i]]), to_text(compute), i));
      if (is_send) {
        wait(ops[i], *own);
        continue;
      }
      wait(*own, ops[i]);
      if (i > 0) wait(ops[i], *find({stage, compute, i - 1}));
    }
    return {};
  }

  // The first transfers backward are begun behind the second-last forward compute of the warm-up.
  void wait_for_warm_up(std::uint32_t stage, const Ops& computes) {
    const auto first = std::ranges::find(computes, Kind::backward_compute,
                                         [&](std::uint32_t op) { return t_.ops[op].kind; });
    if (first - computes.begin() < 2 || first == computes.end()) return;
    for (const Kind kind : {Kind::backward_recv, Kind::backward_send})
      if (const auto op = find({stage, kind, 0})) wait(*op, *(first - 2));
  }

  void add_ends(std::uint32_t stage, const Ops& computes) {
    chain(of(stage, {Kind::all_gather, Kind::reduce_scatter}));
    const Ops gathers = of(stage, {Kind::all_gather});
    const auto first = std::ranges::find(computes, Kind::forward_compute,
                                         [&](std::uint32_t op) { return t_.ops[op].kind; });
    if (!gathers.empty() && first != computes.end()) wait(*first, std::ranges::max(gathers));
    Ops last;
    if (!computes.empty())
      last.push_back(
          *std::ranges::max_element(computes, {}, [&](std::uint32_t op) { return t_.end_s[op]; }));
    for (const Kind kind : {Kind::gc, Kind::layernorm_all_reduce, Kind::embedding_all_reduce,
                            Kind::reduce_scatter, Kind::clip, Kind::optimizer})
      for (std::uint32_t i = 0; i < t_.ops.size(); ++i)
        if (t_.ops[i].stage == stage && t_.ops[i].kind == kind) last.push_back(i);
    chain(last);
  }

  void join(Ops ops, bool is_over_replicas) {
    for (const std::uint32_t op : ops)
      model_.group_of_[op] = static_cast<std::uint32_t>(model_.groups_.size());
    model_.groups_.push_back({std::move(ops), is_over_replicas});
  }

  Status join_ends() {
    Ops embedding, clip;
    for (std::uint32_t i = 0; i < t_.ops.size(); ++i) {
      const Op& op = t_.ops[i];
      if (op.kind == Kind::forward_send || op.kind == Kind::backward_send) {
        const bool is_forward = op.kind == Kind::forward_send;
        const auto end = find({is_forward ? op.stage + 1 : op.stage - 1,
                               is_forward ? Kind::forward_recv : Kind::backward_recv, op.seq});
        if (!end) return refuse(fmt::format("{} has no receiver", text(op)));
        join({i, *end}, false);
      }
      if (op.kind == Kind::all_gather || op.kind == Kind::reduce_scatter) join({i}, true);
      if (op.kind == Kind::embedding_all_reduce) embedding.push_back(i);
      if (op.kind == Kind::clip) clip.push_back(i);
    }
    if (!embedding.empty()) join(std::move(embedding), false);
    if (!clip.empty()) join(std::move(clip), true);
    for (std::uint32_t i = 0; i < t_.ops.size(); ++i)
      if ((t_.ops[i].kind == Kind::forward_recv || t_.ops[i].kind == Kind::backward_recv) &&
          model_.group_of_[i] == StepModel::alone)
        return refuse(fmt::format("{} has no sender", text(t_.ops[i])));
    return {};
  }

  // A group runs when all of its operations have started.
  Status sort() {
    const std::size_t count = t_.ops.size();
    std::vector<Ops> after(count);
    std::vector<std::size_t> open(count), started(model_.groups_.size(), 0);
    std::deque<std::uint32_t> ready;
    for (std::uint32_t op = 0; op < count; ++op) {
      for (const std::uint32_t before : model_.before_[op]) after[before].push_back(op);
      open[op] = model_.before_[op].size();
      if (open[op] == 0) ready.push_back(op);
    }
    std::size_t done = 0;
    const auto end = [&](std::uint32_t op) {
      for (const std::uint32_t next : after[op])
        if (--open[next] == 0) ready.push_back(next);
    };
    for (; !ready.empty(); ++done) {
      const std::uint32_t op = ready.front(), group = model_.group_of_[op];
      ready.pop_front();
      model_.order_.push_back({false, op});
      if (group == StepModel::alone) {
        end(op);
      } else if (++started[group] == model_.groups_[group].ops.size()) {
        model_.order_.push_back({true, group});
        for (const std::uint32_t member : model_.groups_[group].ops) end(member);
      }
    }
    if (done < count)
      return refuse(
          fmt::format("{} of {} operations of a step wait for each other", count - done, count));
    return {};
  }

  const Timeline& t_;
  const std::string& file_;
  std::map<Op, std::uint32_t> number_of_;
  StepModel model_;
};

Result<StepModel> StepModel::read(const Timeline& timeline, const std::string& file) {
  return ModelReader(timeline, file).read();
}

std::vector<double> StepModel::durations(const Timeline& t) const {
  // Clocks of two ends differ a little: an end so long before the last arrival is no measurement.
  constexpr double clock_error_s = 0.01;
  std::vector<double> out(t.start_s.size());
  const std::size_t replicas = t.replicas.size();
  for (std::size_t step = 0; step < t.steps.size(); ++step) {
    for (std::size_t r = 0; r < replicas; ++r)
      for (std::size_t op = 0; op < t.ops.size(); ++op)
        out[t.index(step, r, op)] = t.end_s[t.index(step, r, op)] - t.start_s[t.index(step, r, op)];
    for (const Group& group : groups_) {
      std::vector<double> arrived(replicas, -1e300);
      for (std::size_t r = 0; r < replicas; ++r)
        for (const std::uint32_t op : group.ops)
          arrived[r] = std::max(arrived[r], t.start_s[t.index(step, r, op)]);
      if (group.is_over_replicas) std::ranges::fill(arrived, std::ranges::max(arrived));
      for (std::size_t r = 0; r < replicas; ++r)
        for (const std::uint32_t op : group.ops) {
          const double transfer = t.end_s[t.index(step, r, op)] - arrived[r];
          out[t.index(step, r, op)] = transfer <= -clock_error_s ? 0 : transfer;
        }
    }
  }
  return out;
}

std::vector<double> StepModel::play(const Timeline& t, std::span<const double> seconds,
                                    std::vector<Span>* spans) const {
  const std::size_t replicas = t.replicas.size(), count = t.ops.size();
  std::vector<double> start(replicas * count), end(replicas * count), arrived(replicas), out;
  if (spans != nullptr) spans->resize(seconds.size());
  for (std::size_t step = 0; step < t.steps.size(); ++step) {
    const auto took = [&](std::size_t r, std::size_t op) { return seconds[t.index(step, r, op)]; };
    for (const Event& event : order_) {
      if (!event.is_group) {
        for (std::size_t r = 0; r < replicas; ++r) {
          double begin = 0;
          for (const std::uint32_t before : before_[event.at])
            begin = std::max(begin, end[r * count + before]);
          start[r * count + event.at] = begin;
          if (group_of_[event.at] == alone) end[r * count + event.at] = begin + took(r, event.at);
        }
        continue;
      }
      const Group& group = groups_[event.at];
      std::ranges::fill(arrived, 0);
      for (std::size_t r = 0; r < replicas; ++r)
        for (const std::uint32_t op : group.ops)
          arrived[r] = std::max(arrived[r], start[r * count + op]);
      if (group.is_over_replicas) std::ranges::fill(arrived, std::ranges::max(arrived));
      for (std::size_t r = 0; r < replicas; ++r)
        for (const std::uint32_t op : group.ops) end[r * count + op] = arrived[r] + took(r, op);
    }
    double last = 0;
    for (std::size_t i = 0; i < end.size(); ++i) {
      last = std::max(last, end[i]);
      if (spans != nullptr) (*spans)[step * end.size() + i] = {start[i], end[i]};
    }
    out.push_back(last);
  }
  return out;
}

}  // namespace weft::observe::straggler
