#include "plan/backbone/bulk.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plan/backbone/timed_ways.hpp"
#include "saddle/saddle.hpp"

namespace weft::plan::backbone {
namespace {

// What a Gbit/s above capacity costs, in Gbit/s of peaks: more than any detour saves.
constexpr double overload_price = 50;

// Up to `count` ways from the sender to all receivers: disjoint paths to one, trees to several.
using Way = std::vector<std::uint32_t>;
std::vector<Way> ways_of(const Wan& wan, PathFinder& finder, const Transfer& t,
                         std::uint32_t count) {
  std::vector<Way> out;
  if (t.to.size() == 1) {
    PathSet paths;
    finder.add_disjoint(t.from, t.to[0], count, paths);
    for (std::size_t q = 0; q < paths.path_count(); ++q)
      out.emplace_back(paths.path(q).begin(), paths.path(q).end());
    return out;
  }
  std::vector<double> uses(wan.link_count(), 1.0);
  for (std::uint32_t k = 0; k < count; ++k) {
    Way tree;
    std::vector<double> price = uses;  // what the tree has is free
    for (const std::uint32_t to : t.to) {
      const Way path = finder.cheapest_path(t.from, to, price);
      if (path.empty()) return {};
      for (const std::uint32_t l : path)
        if (std::exchange(price[l], 0) != 0) tree.push_back(l);
    }
    for (const std::uint32_t l : tree) uses[l] += 3;
    std::ranges::sort(tree);
    if (std::ranges::find(out, tree) == out.end()) out.push_back(std::move(tree));
  }
  return out;
}

struct State {
  std::uint32_t now = 0;          // the first slot that can be used
  std::vector<double> left_gbit;  // of each transfer; 0: nothing to plan
  Loads offset;                   // total load of slots gone, background of those to come
};

class Planner {
 public:
  Planner(const Wan& wan, const std::vector<Transfer>& transfers, const BulkOptions& options)
      : wan_(wan), transfers_(transfers), options_(options) {
    PathFinder finder(wan);
    std::size_t cells = 0;
    for (const Transfer& t : transfers) {
      ways_.push_back(ways_of(wan, finder, t, options.paths));
      first_cell_.push_back(cells);
      cells += ways_.back().size() * (t.deadline - t.release);
    }
    rate_.assign(cells, 0.0);
    stored_.resize(transfers.size());
  }

  const std::vector<Way>& ways(std::size_t i) const { return ways_[i]; }
  std::size_t cell(std::size_t i, std::uint32_t slot, std::size_t way) const {
    return first_cell_[i] + (slot - transfers_[i].release) * ways_[i].size() + way;
  }
  double rate(std::size_t i, std::uint32_t slot, std::size_t way) const {
    return rate_[cell(i, slot, way)];
  }

  // Sets the rates of the slots from state.now on.
  saddle::Answer plan(const State& state) {
    saddle::Answer out = solve(state, 0, options_.gap);
    const bool is_peaks = options_.objective == BulkObjective::peaks;
    excess_price_ = is_peaks && overload(state) > 0 ? overload_price : 0;
    if (excess_price_ > 0) out = solve(state, excess_price_, options_.gap);
    if (options_.store) use_storage(state, out);
    return out;
  }
  double excess_price() const { return excess_price_; }  // of the latest plan

  // Prices of the solver's rows, whose loads are shares of a capacity for mlu.
  std::vector<double> per_gbps(std::vector<double> price) const {
    if (options_.objective == BulkObjective::mlu)
      for (std::size_t r = 0; r < price.size(); ++r)
        price[r] /= wan_.gbps(r / options_.slots.count);
    return price;
  }

  // At a constant rate on the first way.
  template <class Choice>
  void add_uniform(Loads& loads, const Choice& is_chosen) const {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& t = transfers_[i];
      if (!is_chosen(t)) continue;
      std::uint32_t open = 0;
      for (std::uint32_t s = t.release; s < t.deadline; ++s) open += t.may_send(s) ? 1 : 0;
      if (ways_[i].empty() || open == 0) continue;
      const double gbps = t.gbit / options_.slots.seconds / open;
      for (std::uint32_t s = t.release; s < t.deadline; ++s)
        if (t.may_send(s))
          for (const std::uint32_t l : ways_[i][0]) loads[row(l, s)] += gbps;
    }
  }

  // Adds what the slot sends, to `out` too.
  void send(std::uint32_t slot, Loads& loads, std::vector<double>& sent_gbit,
            std::vector<BulkAnswer::Send>& out) const {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      if (!transfers_[i].may_send(slot)) continue;
      for (std::size_t w = 0; w < ways_[i].size(); ++w) {
        const double gbps = rate(i, slot, w);
        if (gbps <= 0) continue;
        for (const std::uint32_t l : ways_[i][w]) loads[row(l, slot)] += gbps;
        sent_gbit[i] += gbps * options_.slots.seconds;
        out.push_back({static_cast<std::uint32_t>(i), slot, gbps, ways_[i][w]});
      }
      for (const Stored& one : stored_[i])
        if (one.departure == slot && rate_[one.cell] > 0)
          send_stored(static_cast<std::uint32_t>(i), one, loads, sent_gbit, out);
    }
  }

  void clear(std::size_t i, std::uint32_t slot) {
    if (!transfers_[i].may_send(slot)) return;
    for (std::size_t w = 0; w < ways_[i].size(); ++w) rate_[cell(i, slot, w)] = 0;
  }

  double value_of(const Loads& loads) const {
    double sum = 0, worst = 0;
    for (std::size_t l = 0; l < wan_.link_count(); ++l) {
      const auto first = loads.begin() + static_cast<std::ptrdiff_t>(l * options_.slots.count);
      const double peak = *std::max_element(first, first + options_.slots.count);
      sum += peak;
      worst = std::max(worst, peak / wan_.gbps(l));
    }
    return options_.objective == BulkObjective::peaks ? sum : worst;
  }

 private:
  // A way that waits somewhere, or that is none of ways_.
  struct Stored {
    std::uint32_t departure;
    std::vector<std::uint32_t> rows;  // in order of time
    std::size_t cell;
  };

  std::size_t row(std::size_t link, std::uint32_t slot) const {
    return link * options_.slots.count + slot;
  }

  void send_stored(std::uint32_t i, const Stored& way, Loads& loads, std::vector<double>& sent_gbit,
                   std::vector<BulkAnswer::Send>& out) const {
    const double gbps = rate_[way.cell];
    sent_gbit[i] += gbps * options_.slots.seconds;
    std::uint32_t stage = 0;
    for (std::size_t at = 0; at < way.rows.size(); ++stage) {
      BulkAnswer::Send one{i, way.rows[at] % options_.slots.count, gbps, {}, stage};
      for (; at < way.rows.size() && way.rows[at] % options_.slots.count == one.slot; ++at) {
        loads[way.rows[at]] += gbps;
        one.links.push_back(way.rows[at] / options_.slots.count);
      }
      out.push_back(std::move(one));
    }
  }

  // What a transfer's volume costs at least, where no slot takes more than its largest rate; and
  // what the dearest part of it does.
  struct Filled {
    double cost = 0, dearest = 0;
  };
  static Filled fill(const Transfer& t, double volume, const std::vector<double>& costs) {
    std::vector<double> sorted;
    for (const double cost : costs)
      if (std::isfinite(cost)) sorted.push_back(cost);
    std::ranges::sort(sorted);
    Filled out;
    for (const double cost : sorted) {
      const double part = std::min(volume, t.gbps_max);
      if (part <= 0) break;
      out = {out.cost + part * cost, cost};
      volume -= part;
    }
    return out;
  }

  // The cheapest that the problem has for each slot in which the transfer may leave.
  std::vector<double> known_costs(std::size_t i, std::uint32_t now,
                                  const std::vector<double>& price) const {
    const Transfer& t = transfers_[i];
    std::vector<double> out(options_.slots.count, std::numeric_limits<double>::infinity());
    for (std::uint32_t s = std::max(t.release, now); s < t.deadline; ++s) {
      if (!t.may_send(s)) continue;
      for (const Way& way : ways_[i]) {
        double cost = 0;
        for (const std::uint32_t l : way) cost += price[row(l, s)];
        out[s] = std::min(out[s], cost);
      }
    }
    for (const Stored& one : stored_[i]) {
      double cost = 0;
      for (const std::uint32_t r : one.rows) cost += price[r];
      out[one.departure] = std::min(out[one.departure], cost);
    }
    return out;
  }

  // Adds the ways that would be cheaper at these prices. Returns by how much all transfers together
  // would be: what the bound of the ways so far is above that of all ways.
  double add_cheaper_ways(const State& state, const std::vector<double>& price, bool& has_added) {
    double out = 0;
    TimedWays ways(wan_, options_.slots);
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& t = transfers_[i];
      if (!(state.left_gbit[i] > 0) || ways_[i].empty() || t.to.size() != 1) continue;
      const std::uint32_t first = std::max(t.release, state.now);
      const double volume = state.left_gbit[i] / options_.slots.seconds;
      const std::vector<double> known = known_costs(i, state.now, price);
      ways.find(t, first, price);
      std::vector<double> any(options_.slots.count, std::numeric_limits<double>::infinity());
      for (std::uint32_t s = first; s < t.deadline; ++s)
        if (t.may_send(s)) any[s] = std::min(known[s], ways.cost(s));
      const Filled by_known = fill(t, volume, known);
      out += by_known.cost - fill(t, volume, any).cost;
      for (std::uint32_t s = first; s < t.deadline; ++s) {
        // What is dearer than all that is used now would not be used.
        if (!(any[s] < std::min(known[s], by_known.dearest) * (1 - 1e-9))) continue;
        stored_[i].push_back({s, ways.rows(s), rate_.size()});
        rate_.push_back(0);
        has_added = true;
      }
    }
    return std::max(0.0, out);
  }

  // Column generation (Dantzig & Wolfe, Operations Research 8, 1960): ways that the latest prices
  // call for, until value and bound over all ways are near enough. Any prices prove a bound: the
  // best one stays.
  void use_storage(const State& state, saddle::Answer& out) {
    constexpr std::uint32_t rounds_max = 60;
    double best = -std::numeric_limits<double>::infinity(), seconds = 0, wanted = options_.gap;
    std::vector<double> proof;
    std::uint32_t iterations = 0;
    for (std::uint32_t round = 0; round < rounds_max && !out.x.empty(); ++round) {
      bool has_added = false;
      const double bound = out.bound - add_cheaper_ways(state, per_gbps(out.y), has_added);
      if (bound > best) {
        best = bound;
        proof = out.y;
      }
      seconds += std::exchange(out.seconds, 0);
      iterations += std::exchange(out.iterations, 0);
      const double gap = best > 0 ? out.value / best - 1 : 0;
      if (out.value - best <= options_.gap * best || (!has_added && wanted <= options_.gap / 2))
        break;
      // Near enough for the ways so far to tell which are missing.
      wanted = has_added ? std::max(options_.gap / 2, gap / 5) : options_.gap / 2;
      out = solve(state, excess_price_, wanted);
    }
    if (!out.x.empty()) {
      out.bound = best;
      out.y = proof;
    }
    out.seconds += seconds;
    out.iterations += iterations;
  }

  saddle::Problem make_problem(const State& state, double penalty) {
    const bool is_mlu = options_.objective == BulkObjective::mlu;
    saddle::Problem p;
    cells_.clear();
    for (std::size_t l = 0; l < wan_.link_count(); ++l) {
      p.scale.insert(p.scale.end(), options_.slots.count, is_mlu ? 1 / wan_.gbps(l) : 1);
      if (!is_mlu || l == 0)
        p.row_blocks.push_back(
            {static_cast<std::uint32_t>(row(l, 0)), 1, 1 + penalty, wan_.gbps(l)});
    }
    for (std::size_t r = 0; r < p.scale.size(); ++r)
      p.offset.push_back(state.offset[r] * p.scale[r]);
    p.entry_begin.push_back(0);
    for (std::size_t i = 0; i < transfers_.size(); ++i)
      if (state.left_gbit[i] > 0 && !ways_[i].empty()) add_block(p, i, state);
    return p;
  }

  void add_block(saddle::Problem& p, std::size_t i, const State& state) {
    const Transfer& t = transfers_[i];
    saddle::ColumnBlock block{static_cast<std::uint32_t>(p.cost.size()),
                              state.left_gbit[i] / options_.slots.seconds};
    const bool is_capped = t.gbps_max < block.volume;
    block.first_group = static_cast<std::uint32_t>(p.groups.size());
    for (std::uint32_t s = std::max(t.release, state.now); s < t.deadline; ++s) {
      if (!t.may_send(s)) continue;
      const auto begin = static_cast<std::uint32_t>(p.cost.size());
      for (std::size_t w = 0; w < ways_[i].size(); ++w) {
        for (const std::uint32_t l : ways_[i][w])
          p.entries.push_back(static_cast<std::uint32_t>(row(l, s)));
        p.entry_begin.push_back(static_cast<std::uint32_t>(p.entries.size()));
        p.cost.push_back(0);
        cells_.push_back(cell(i, s, w));
      }
      for (const Stored& one : stored_[i]) {
        if (one.departure != s) continue;
        p.entries.insert(p.entries.end(), one.rows.begin(), one.rows.end());
        p.entry_begin.push_back(static_cast<std::uint32_t>(p.entries.size()));
        p.cost.push_back(0);
        cells_.push_back(one.cell);
      }
      if (is_capped)
        p.groups.push_back({begin, static_cast<std::uint32_t>(p.cost.size()), t.gbps_max});
    }
    if (is_capped)
      block.group_count = static_cast<std::uint32_t>(p.groups.size()) - block.first_group;
    if (block.begin < p.cost.size()) p.column_blocks.push_back(block);
  }

  saddle::Answer solve(const State& state, double penalty, double gap) {
    const saddle::Problem problem = make_problem(state, penalty);
    const saddle::Options options{.gap = gap};
    saddle::Answer out;
    if (problem.column_blocks.empty()) return out;
    if (weight_ > 0) {
      saddle::Start start{.x = {}, .y = price_, .weight = weight_};
      for (const std::size_t c : cells_) start.x.push_back(rate_[c]);
      out = saddle::solve(problem, options, &start);
    } else {
      out = saddle::solve(problem, options);
    }
    for (std::size_t q = 0; q < cells_.size(); ++q) rate_[cells_[q]] = out.x[q];
    price_ = out.next.y;
    weight_ = out.next.weight;
    return out;
  }

  // The most by which planned loads are above a capacity.
  double overload(const State& state) const {
    Loads loads = state.offset;
    std::vector<double> sent(transfers_.size());
    std::vector<BulkAnswer::Send> sends;
    for (std::uint32_t s = state.now; s < options_.slots.count; ++s) send(s, loads, sent, sends);
    double out = 0;
    for (std::size_t r = 0; r < loads.size(); ++r)
      out = std::max(out, loads[r] - wan_.gbps(r / options_.slots.count));
    return out;
  }

  const Wan& wan_;
  const std::vector<Transfer>& transfers_;
  const BulkOptions& options_;
  std::vector<std::vector<Way>> ways_;   // of each transfer
  std::vector<std::size_t> first_cell_;  // of each transfer
  std::vector<double> rate_;             // of each transfer, slot and way; then of what is stored
  std::vector<std::vector<Stored>> stored_;  // of each transfer
  std::vector<std::size_t> cells_;           // of the columns of the latest problem
  std::vector<double> price_;
  double weight_ = 0, excess_price_ = 0;
};

// What peaks are above capacity: summed over the links, and of the link that is so most.
struct Over {
  double sum = 0, most = 0;
};
Over over_capacity(const Wan& wan, const Loads& loads, const Slots& slots) {
  Over out;
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    const auto first = loads.begin() + static_cast<std::ptrdiff_t>(l * slots.count);
    const double peak = *std::max_element(first, first + slots.count);
    const double over = std::max(0.0, peak - wan.gbps(l));
    out.sum += over;
    out.most = std::max(out.most, over);
  }
  return out;
}

// Value, excess and bound of the loads. `priced_bound`: of value plus price times excess, over all
// plans; so plans with no more excess than this one have no value below the difference.
void finish_answer(BulkAnswer& out, const Planner& planner, const Wan& wan, const Slots& slots,
                   double priced_bound) {
  out.value = planner.value_of(out.load);
  const Over over = over_capacity(wan, out.load, slots);
  out.excess = over.sum;
  out.over_gbps = over.most;
  out.uniform_excess = over_capacity(wan, out.uniform_load, slots).sum;
  out.bound =
      std::min(out.value, std::max(out.background, priced_bound - out.excess_price * out.excess));
  out.gap = out.bound > 0 ? out.value / out.bound - 1 : 0;
}

BulkAnswer begin_answer(const Planner& planner, const Loads& background) {
  BulkAnswer out;
  out.load = out.uniform_load = background;
  out.price.assign(background.size(), 0.0);
  planner.add_uniform(out.uniform_load, [](const Transfer&) { return true; });
  out.background = planner.value_of(background);
  out.uniform = planner.value_of(out.uniform_load);
  return out;
}

}  // namespace

BulkAnswer plan_bulk(const Wan& wan, const std::vector<Transfer>& transfers,
                     const Loads& background, const BulkOptions& options) {
  Planner planner(wan, transfers, options);
  BulkAnswer out = begin_answer(planner, background);
  State state{.left_gbit = {}, .offset = background};
  for (const Transfer& t : transfers) state.left_gbit.push_back(t.gbit);
  const saddle::Answer answer = planner.plan(state);
  out.sent.assign(transfers.size(), 0.0);
  for (std::uint32_t s = 0; s < options.slots.count; ++s)
    planner.send(s, out.load, out.sent, out.sends);
  double waited = 0;
  for (const BulkAnswer::Send& one : out.sends)
    if (one.stage == 1) waited += one.gbps * options.slots.seconds;
  const double all = std::accumulate(out.sent.begin(), out.sent.end(), 0.0);
  out.waited = all > 0 ? waited / all : 0;
  out.excess_price = planner.excess_price();
  out.iterations = answer.iterations;
  out.seconds = answer.seconds;
  out.columns = answer.x.size();
  if (!answer.x.empty()) out.price = planner.per_gbps(answer.y);
  finish_answer(out, planner, wan, options.slots, answer.x.empty() ? out.background : answer.bound);
  return out;
}

Loads forecast(const Loads& seen, const std::vector<Loads>& history, std::uint32_t now,
               const Slots& slots) {
  constexpr std::uint32_t recent = 16, around = 5;  // slots to compare days by; to smooth over
  constexpr double memory = 0.8;                    // the weight of a day over that of the next
  const auto mean_near = [&](const double* loads, std::uint32_t s, std::uint32_t end) {
    const std::uint32_t from = s > around ? s - around : 0;
    const std::uint32_t to = std::min(end, s + around + 1);
    return std::accumulate(loads + from, loads + to, 0.0) / (to - from);
  };
  Loads out = seen;
  for (std::size_t first = 0; first < seen.size(); first += slots.count) {
    const auto usual = [&](std::uint32_t s) {
      if (history.empty()) return now > 0 ? mean_near(&seen[first], now - 1, now) : 0.0;
      double sum = 0, weights = 0, weight = 1;
      for (std::size_t d = history.size(); d-- > 0; weight *= memory) {
        sum += weight * mean_near(&history[d][first], s, slots.count);
        weights += weight;
      }
      return sum / weights;
    };
    double today = 0, before = 0;
    for (std::uint32_t s = now > recent ? now - recent : 0; s < now; ++s) {
      today += seen[first + s];
      before += usual(s);
    }
    const double ratio = before > 0 ? std::clamp(today / before, 0.5, 2.0) : 1;
    for (std::uint32_t s = now; s < slots.count; ++s) out[first + s] = usual(s) * ratio;
  }
  return out;
}

namespace {

// What transfers that are not known yet will add, were they like those so far: in proportion to the
// background, and spread evenly. `known`: uniform loads of those that are.
void add_unknown(Loads& loads, const Loads& known, std::uint32_t now, const Slots& slots) {
  std::vector<double> total(slots.count, 0.0);
  for (std::size_t r = 0; r < loads.size(); ++r) total[r % slots.count] += loads[r];
  const double seen = std::accumulate(total.begin(), total.begin() + now, 0.0);
  for (std::size_t first = 0; seen > 0 && first < loads.size(); first += slots.count) {
    const double so_far = std::accumulate(&known[first], &known[first] + now, 0.0);
    for (std::uint32_t s = now + 1; s < slots.count; ++s)
      loads[first + s] += std::max(0.0, so_far / seen * total[s] - known[first + s]);
  }
}

}  // namespace

BulkAnswer replay_bulk(const Wan& wan, const std::vector<Transfer>& transfers,
                       const Loads& background, const std::vector<Loads>& history, Known known,
                       const BulkOptions& options) {
  const BulkAnswer clairvoyant = plan_bulk(wan, transfers, background, options);
  Planner planner(wan, transfers, options);
  BulkAnswer out = begin_answer(planner, background);
  out.excess_price = clairvoyant.excess_price;
  out.price = clairvoyant.price;
  out.columns = clairvoyant.columns;
  out.sent.assign(transfers.size(), 0.0);
  Loads seen(background.size(), 0.0);
  for (std::uint32_t now = 0; now < options.slots.count; ++now) {
    State state{.now = now, .left_gbit = {}, .offset = forecast(seen, history, now, options.slots)};
    const auto is_known = [&](const Transfer& t) {
      return known == Known::day_ahead || t.release <= now;
    };
    if (known == Known::release) {
      Loads uniform(seen.size(), 0.0);
      planner.add_uniform(uniform, is_known);
      add_unknown(state.offset, uniform, now, options.slots);
    }
    for (std::size_t r = 0; r < seen.size(); ++r)  // what is gone counts with what was sent
      if (r % options.slots.count < now) state.offset[r] = out.load[r];
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const double left = transfers[i].gbit - out.sent[i];
      const bool is_due = is_known(transfers[i]) && left > 1e-9 * transfers[i].gbit;
      state.left_gbit.push_back(is_due ? left : 0);
      if (!is_due) planner.clear(i, now);
    }
    const saddle::Answer answer = planner.plan(state);
    out.iterations += answer.iterations;
    out.seconds += answer.seconds;
    ++out.replans;
    planner.send(now, out.load, out.sent, out.sends);
    for (std::size_t l = 0; l < wan.link_count(); ++l)
      seen[l * options.slots.count + now] = background[l * options.slots.count + now];
  }
  finish_answer(out, planner, wan, options.slots,
                clairvoyant.bound + clairvoyant.excess_price * clairvoyant.excess);
  return out;
}

}  // namespace weft::plan::backbone
