#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <span>

#include "base/check.hpp"
#include "saddle/project.hpp"
#include "saddle/saddle.hpp"

namespace weft::saddle {
namespace {

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double gap_of(double value, double bound) {
  const double size = std::min(std::abs(value), std::abs(bound));
  const double distance = std::max(0.0, value - bound);
  if (distance <= 1e-12 * std::abs(value)) return 0;
  return size > 0 && value * bound > 0 ? distance / size : unbounded;
}

// Sums of a few terms, as two chains: the processor adds them side by side.
template <class Index>
double sum_at(const double* values, const Index* at, const Index* end) {
  double a = 0, b = 0;
  for (; end - at >= 2; at += 2) {
    a += values[at[0]];
    b += values[at[1]];
  }
  return at < end ? a + b + *(values + *at) : a + b;
}

// A problem and what one pass over its columns computes. `Index`: the narrowest type that numbers
// the rows, since reading entries is most of the work.
template <class Index, bool is_weighted>
class Columns {
 public:
  explicit Columns(const Problem& problem)
      : p_(problem), entries_(problem.entries.begin(), problem.entries.end()) {
    for (const RowBlock& block : p_.row_blocks) is_packing_ |= block.high == unbounded;
  }

  const Problem& problem() const { return p_; }
  bool is_packing() const { return is_packing_; }
  std::span<const Index> rows_of(std::size_t q) const {
    return {entries_.data() + p_.entry_begin[q], entries_.data() + p_.entry_begin[q + 1]};
  }
  std::size_t column_end(std::size_t block) const {
    return block + 1 < p_.column_blocks.size() ? p_.column_blocks[block + 1].begin
                                               : p_.column_count();
  }
  std::size_t row_end(std::size_t block) const {
    return block + 1 < p_.row_blocks.size() ? p_.row_blocks[block + 1].begin : p_.row_count();
  }
  // Adds a column's loads, without scale.
  void add(std::size_t q, double flow, std::vector<double>& loads) const {
    const Index* const at = entries_.data();
    double* const out = loads.data();
    for (std::uint32_t e = p_.entry_begin[q], end = p_.entry_begin[q + 1]; e < end; ++e)
      out[at[e]] += is_weighted ? flow * p_.weights[e] : flow;
  }
  double weight(std::size_t e) const { return is_weighted ? p_.weights[e] : 1; }
  double reduced_cost(std::size_t q, const std::vector<double>& price) const {
    const Index* const at = entries_.data();
    if constexpr (is_weighted) {
      double out = p_.cost[q];
      for (std::uint32_t e = p_.entry_begin[q]; e < p_.entry_begin[q + 1]; ++e)
        out += price[at[e]] * p_.weights[e];
      return out;
    }
    return p_.cost[q] + sum_at(price.data(), at + p_.entry_begin[q], at + p_.entry_begin[q + 1]);
  }

  // A x + offset.
  std::vector<double> loads(const std::vector<double>& x) const {
    std::vector<double> out(p_.row_count(), 0.0);
    for (std::size_t q = 0; q < x.size(); ++q)
      if (x[q] != 0) add(q, x[q], out);
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = out[r] * p_.scale[r] + p_.offset[r];
    return out;
  }

  double value(const std::vector<double>& x, const std::vector<double>& loads) const {
    double out = 0;
    for (std::size_t q = 0; q < x.size(); ++q) out += p_.cost[q] * x[q];
    for (std::size_t b = 0; b < p_.row_blocks.size(); ++b) {
      const RowBlock& block = p_.row_blocks[b];
      double peak = loads[block.begin];
      for (std::size_t r = block.begin; r < row_end(b); ++r) peak = std::max(peak, loads[r]);
      out += block.low * peak;
      if (peak > block.limit && block.high > block.low)
        out += (block.high - block.low) * (peak - block.limit);
    }
    return out;
  }

  // The part of the bound that prices alone give.
  double price_part(const std::vector<double>& y) const {
    double out = 0;
    for (std::size_t b = 0; b < p_.row_blocks.size(); ++b) {
      const RowBlock& block = p_.row_blocks[b];
      double sum = 0;
      for (std::size_t r = block.begin; r < row_end(b); ++r) {
        sum += y[r];
        out += y[r] * p_.offset[r];
      }
      if (block.high > block.low) out -= block.limit * (sum - block.low);
    }
    return out;
  }

  void set_price(const std::vector<double>& y, std::vector<double>& price) const {
    price.resize(y.size());
    for (std::size_t r = 0; r < y.size(); ++r) price[r] = p_.scale[r] * y[r];
  }

  double bound(const std::vector<double>& y) const {
    std::vector<double> price, reduced;
    set_price(y, price);
    double out = price_part(y);
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b) {
      const ColumnBlock& block = p_.column_blocks[b];
      reduced.clear();
      for (std::size_t q = block.begin; q < column_end(b); ++q)
        reduced.push_back(reduced_cost(q, price));
      out += least(block, reduced);
    }
    return out;
  }

  // min over the block's x of reduced . x
  double least(const ColumnBlock& block, const std::vector<double>& reduced) const {
    if (reduced.empty()) return 0;
    if (block.group_count == 0) {
      const double lowest = *std::ranges::min_element(reduced);
      return block.volume * (block.fill == Fill::exactly ? lowest : std::min(0.0, lowest));
    }
    std::vector<std::pair<double, double>> offers;  // cost, cap of a group
    for (std::uint32_t g = 0; g < block.group_count; ++g) {
      const Group& group = p_.groups[block.first_group + g];
      const auto first = reduced.begin() + (group.begin - block.begin);
      offers.emplace_back(*std::min_element(first, first + (group.end - group.begin)), group.cap);
    }
    std::ranges::sort(offers);
    double out = 0, left = block.volume;
    for (const auto& [cost, cap] : offers) {
      if (left <= 0 || (block.fill == Fill::at_most && cost >= 0)) break;
      const double taken = std::min(left, cap);
      out += taken * cost;
      left -= taken;
    }
    return out;
  }

  // Of a packing problem: each column scaled down by its worst row, then filled up in order.
  std::vector<double> fit(const std::vector<double>& x) const {
    std::vector<double> room(p_.row_count()), used(p_.row_count(), 0.0), factor(p_.row_count());
    for (std::size_t b = 0; b < p_.row_blocks.size(); ++b)
      for (std::size_t r = p_.row_blocks[b].begin; r < row_end(b); ++r)
        room[r] = std::max(0.0, (p_.row_blocks[b].limit - p_.offset[r]) / p_.scale[r]);
    for (std::size_t q = 0; q < x.size(); ++q)
      if (x[q] > 0)
        for (const Index r : rows_of(q)) used[r] += x[q];
    for (std::size_t r = 0; r < room.size(); ++r)
      factor[r] = used[r] > room[r] ? room[r] / used[r] : 1.0;
    std::vector<double> out(x.size(), 0.0);
    for (std::size_t q = 0; q < x.size(); ++q) {
      if (x[q] <= 0) continue;
      double least = 1;
      for (const Index r : rows_of(q)) least = std::min(least, factor[r]);
      out[q] = x[q] * least;
      for (const Index r : rows_of(q)) room[r] -= out[q];
    }
    fill_up(out, room);
    return out;
  }

 private:
  void fill_up(std::vector<double>& x, std::vector<double>& room) const {
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b) {
      const std::size_t first = p_.column_blocks[b].begin, end = column_end(b);
      double left = p_.column_blocks[b].volume;
      for (std::size_t q = first; q < end; ++q) left -= x[q];
      for (std::size_t q = first; q < end && left > 1e-9 * p_.column_blocks[b].volume; ++q) {
        double more = p_.cost[q] < 0 ? left : 0;
        for (const Index r : rows_of(q)) more = std::min(more, room[r]);
        if (more <= 0) continue;
        x[q] += more;
        left -= more;
        for (const Index r : rows_of(q)) room[r] -= more;
      }
    }
  }

  const Problem& p_;
  std::vector<Index> entries_;
  bool is_packing_ = false;
};

// Steps of each column block and row: no longer than the matrix allows, times or over the weight.
struct Steps {
  std::vector<double> column,
      row;  // 1 / the largest sum of a column of the block; 1 / sum of the row

  template <class Columns>
  explicit Steps(const Columns& columns) {
    const Problem& p = columns.problem();
    std::vector<double> sums(p.row_count(), 0.0);
    for (std::size_t b = 0; b < p.column_blocks.size(); ++b) {
      double longest = 0;
      for (std::size_t q = p.column_blocks[b].begin; q < columns.column_end(b); ++q) {
        double sum = 0;
        for (std::uint32_t e = p.entry_begin[q]; e < p.entry_begin[q + 1]; ++e) {
          const std::uint32_t r = p.entries[e];
          sum += p.scale[r] * columns.weight(e);
          sums[r] += p.scale[r] * columns.weight(e);
        }
        longest = std::max(longest, sum);
      }
      column.push_back(longest > 0 ? 1 / longest : 1);  // one that meets no row takes any step
    }
    // A row that no column meets takes any step, and needs one to lose a price of a warm start.
    for (std::size_t r = 0; r < sums.size(); ++r)
      row.push_back(1 / (sums[r] > 0 ? sums[r] : p.scale[r]));
  }
};

// Found by trial on backbones of 158 to 754 sites, where together they take a third of the
// iterations.
constexpr double relaxation = 1.8, pace_max = 4, pace_growth = 1.1;

template <class Index, bool is_weighted>
class Solver {
 public:
  Solver(const Problem& problem, const Options& options, const Start* start)
      : p_(problem),
        options_(options),
        columns_(problem),
        steps_(columns_),
        load_old_(problem.row_count(), 0.0),
        load_(problem.row_count()),
        load_sum_(problem.row_count()),
        x_sum_(problem.column_count(), 0.0),
        y_sum_(problem.row_count(), 0.0) {
    began_ = thread_seconds();
    start != nullptr ? begin_from(*start) : begin();
    x_from_ = x_;
    x_next_ = x_;
    y_next_ = y_;
    y_from_ = y_;
    raw_loads(x_, load_old_);
    best_.value = unbounded;
    best_.bound = -unbounded;
  }

  Answer run() {
    while (best_.iterations < options_.iterations_max) {
      const bool checks = (best_.iterations + 1) % options_.check_every == 0;
      step();
      ++best_.iterations;
      if (checks && check()) break;
    }
    if (best_.x.empty()) check();
    best_.gap = gap_of(best_.value, best_.bound);
    best_.next = {std::move(x_next_), std::move(y_next_), weight_};
    best_.seconds = thread_seconds() - began_;
    return std::move(best_);
  }

 private:
  void begin() {
    x_.assign(p_.column_count(), 0.0);
    y_.assign(p_.row_count(), 0.0);
    double volume = 0, low = 0;
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b) {
      volume += p_.column_blocks[b].volume;
      if (p_.column_blocks[b].fill == Fill::exactly) spread(b);
    }
    for (std::size_t b = 0; b < p_.row_blocks.size(); ++b) {
      const double rows = static_cast<double>(columns_.row_end(b) - p_.row_blocks[b].begin);
      low += p_.row_blocks[b].low;
      for (std::size_t r = p_.row_blocks[b].begin; r < columns_.row_end(b); ++r)
        y_[r] = p_.row_blocks[b].low / rows;
    }
    // A typical flow over a typical price: half of an even share where peaks are paid for.
    const std::size_t parts = low > 0 ? p_.column_count() : p_.column_blocks.size();
    volume /= static_cast<double>(std::max<std::size_t>(1, parts));
    const double price = low > 0 ? low / static_cast<double>(p_.row_count()) : 1;
    weight_ = volume / price * (options_.weight > 0 ? options_.weight : low > 0 ? 0.5 : 5);
  }

  void spread(std::size_t b) {
    const ColumnBlock& block = p_.column_blocks[b];
    const std::size_t end = columns_.column_end(b);
    const double share = block.volume / static_cast<double>(end - block.begin);
    std::fill(x_.begin() + block.begin, x_.begin() + static_cast<std::ptrdiff_t>(end), share);
    if (block.group_count > 0) project_capped(block, &x_[block.begin]);
  }

  void begin_from(const Start& start) {
    WEFT_CHECK(start.x.size() == p_.column_count() && start.y.size() == p_.row_count());
    x_ = start.x;
    y_ = start.y;
    weight_ = start.weight;
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b)
      project(p_.column_blocks[b], &x_[p_.column_blocks[b].begin],
              columns_.column_end(b) - p_.column_blocks[b].begin);
  }

  void raw_loads(const std::vector<double>& x, std::vector<double>& out) const {
    out.assign(p_.row_count(), 0.0);
    for (std::size_t q = 0; q < x.size(); ++q)
      if (x[q] != 0) columns_.add(q, x[q], out);
  }

  void step() {
    columns_.set_price(y_, price_);
    std::ranges::fill(load_, 0.0);
    double moved = 0;  // of x, squared, over the steps
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b) {
      const ColumnBlock& block = p_.column_blocks[b];
      const std::size_t end = columns_.column_end(b);
      const double tau = pace_ * weight_ * steps_.column[b];
      for (std::size_t q = block.begin; q < end; ++q)
        x_next_[q] = x_[q] - tau * columns_.reduced_cost(q, price_);
      if (block.begin == end) continue;
      project(block, &x_next_[block.begin], end - block.begin);
      double own = 0;
      for (std::size_t q = block.begin; q < end; ++q) {
        const double v = x_next_[q], change = v - x_[q];
        x_[q] += relaxation * change;
        own += change * change;
        if (v == 0) continue;
        x_sum_[q] += v;
        columns_.add(q, v, load_);
      }
      moved += own / steps_.column[b];
    }
    set_pace(moved);
    step_prices();
    for (std::size_t r = 0; r < y_.size(); ++r) {
      y_sum_[r] += y_next_[r];
      load_sum_[r] += load_[r];
      y_[r] += relaxation * (y_next_[r] - y_[r]);
      load_old_[r] += relaxation * (load_[r] - load_old_[r]);
    }
    ++since_;
  }

  // How far steps may exceed what is safe for any direction: as far as the latest direction of x
  // allows, since most columns rest at 0.
  void set_pace(double moved) {
    double answered = 0;
    for (std::size_t r = 0; r < y_.size(); ++r) {
      const double change = p_.scale[r] * (load_[r] - load_old_[r]);
      answered += steps_.row[r] * change * change;
    }
    const double limit = answered > 0 ? std::sqrt(0.98 * moved / answered) : pace_max;
    pace_ = std::clamp(std::min(pace_ * pace_growth, limit), 1.0, pace_max);
  }

  void step_prices() {
    sigma_.resize(y_.size());
    for (std::size_t r = 0; r < y_.size(); ++r) {
      sigma_[r] = pace_ * steps_.row[r] / weight_;
      y_next_[r] = y_[r] + sigma_[r] * (p_.scale[r] * (2 * load_[r] - load_old_[r]) + p_.offset[r]);
    }
    for (std::size_t b = 0; b < p_.row_blocks.size(); ++b) {
      const std::size_t first = p_.row_blocks[b].begin;
      project_prices(p_.row_blocks[b], first, columns_.row_end(b) - first);
    }
  }

  void project_prices(const RowBlock& block, std::size_t first, std::size_t n) {
    double* const y = &y_next_[first];
    const double* const sigma = &sigma_[first];
    if (n == 1) {
      *y = std::clamp(*y - block.limit * *sigma, block.low, block.high);
      return;
    }
    double t = block.limit, total = block.low;
    if (block.high > block.low) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += std::max(0.0, y[i] - t * sigma[i]);
      total = std::clamp(sum, block.low, block.high);
      if (total != sum) t = threshold(y, sigma, n, total, scratch_);
    } else {
      t = threshold(y, sigma, n, total, scratch_);
    }
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += y[i] = std::max(0.0, y[i] - t * sigma[i]);
    // Large steps cancel digits, and a bound must not rest on prices outside of Y.
    const double exact = std::clamp(sum, block.low, block.high);
    if (sum != exact && sum > 0)
      for (std::size_t i = 0; i < n; ++i) y[i] *= exact / sum;
  }

  void project(const ColumnBlock& block, double* x, std::size_t n) {
    if (block.group_count > 0) return project_capped(block, x);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::max(0.0, x[i]);
    double t = 0;
    if (block.fill == Fill::exactly || sum > block.volume)
      t = n <= 4 ? small_threshold(x, n, block.volume)
                 : threshold(x, nullptr, n, block.volume, scratch_);
    for (std::size_t i = 0; i < n; ++i) x[i] = std::max(0.0, x[i] - t);
  }

  // Groups are capped: what is taken from all is found by Newton's method, kept inside a bracket.
  void project_capped(const ColumnBlock& block, double* x) {
    const auto groups = std::span(p_.groups).subspan(block.first_group, block.group_count);
    const auto filled = [&](double t, double& slope) {
      double out = 0;
      slope = 0;
      for (const Group& g : groups) {
        double sum = 0, above = 0;
        for (std::size_t q = g.begin - block.begin; q < g.end - block.begin; ++q) {
          if (x[q] <= t) continue;
          sum += x[q] - t;
          above += 1;
        }
        if (sum < g.cap) slope += above;
        out += std::min(sum, g.cap);
      }
      return out;
    };
    double slope = 0, t = 0;
    if (block.fill == Fill::exactly || filled(0, slope) > block.volume) {
      const std::size_t n = groups.back().end - block.begin;
      const auto [low, high] = std::minmax_element(x, x + n);
      double lower = *low - block.volume, upper = *high;
      t = lower;
      for (int i = 0; i < 100 && upper - lower > 1e-15 * (std::abs(upper) + block.volume); ++i) {
        const double excess = filled(t, slope) - block.volume;
        if (std::abs(excess) <= 1e-13 * block.volume) break;
        (excess > 0 ? lower : upper) = t;
        t = slope > 0 ? t + excess / slope : lower - 1;
        if (!(t > lower && t < upper)) t = (lower + upper) / 2;
      }
    }
    for (const Group& g : groups) {
      double* const first = x + (g.begin - block.begin);
      const std::size_t n = g.end - g.begin;
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += std::max(0.0, first[i] - t);
      const double s = sum > g.cap ? threshold(first, nullptr, n, g.cap, scratch_) : t;
      for (std::size_t i = 0; i < n; ++i) first[i] = std::max(0.0, first[i] - s);
    }
  }

  void offer_bound(double bound, const std::vector<double>& y) {
    if (bound <= best_.bound) return;
    best_.bound = bound;
    best_.y = y;
  }
  // Returns the value at x, made feasible.
  double offer(const std::vector<double>& x, const std::vector<double>& raw_loads) {
    std::vector<double> fitted;
    double value = 0;
    if (columns_.is_packing()) {
      fitted = columns_.fit(x);
      for (std::size_t q = 0; q < x.size(); ++q) value += p_.cost[q] * fitted[q];
    } else {
      std::vector<double> loads(raw_loads.size());
      for (std::size_t r = 0; r < loads.size(); ++r)
        loads[r] = raw_loads[r] * p_.scale[r] + p_.offset[r];
      value = columns_.value(x, loads);
    }
    if (value < best_.value) {
      best_.value = value;
      best_.x = columns_.is_packing() ? std::move(fitted) : x;
    }
    return value;
  }

  // Judges the present point and the average; whether the gap is reached. Restarts where that pays.
  bool check() {
    const double inverse = 1.0 / since_;
    const auto mean_of = [&](const std::vector<double>& sum) {
      std::vector<double> out(sum.size());
      for (std::size_t i = 0; i < sum.size(); ++i) out[i] = sum[i] * inverse;
      return out;
    };
    std::vector<double> x_mean = mean_of(x_sum_), y_mean = mean_of(y_sum_);
    const double bound = columns_.bound(y_next_), bound_mean = columns_.bound(y_mean);
    offer_bound(bound, y_next_);
    offer_bound(bound_mean, y_mean);
    const double gap = gap_of(offer(x_next_, load_), bound);
    const double gap_mean = gap_of(offer(x_mean, mean_of(load_sum_)), bound_mean);
    if (gap_of(best_.value, best_.bound) <= options_.gap) return true;
    const double now = std::min(gap, gap_mean);
    const double waited = 0.36 * best_.iterations + 20 * options_.check_every;
    if (now < 0.2 * gap_restart_ || (now < 0.8 * gap_restart_ && now > gap_last_) ||
        since_ > waited) {
      if (gap_mean < gap) {
        x_ = std::move(x_mean);
        y_ = std::move(y_mean);
        raw_loads(x_, load_old_);
      } else {
        x_ = x_next_;
        y_ = y_next_;
        load_old_ = load_;
      }
      gap_restart_ = now;
      restart();
    }
    gap_last_ = now;
    return false;
  }

  // The weight follows the distances that x and y went since the last restart.
  void restart() {
    double dx = 0, dy = 0;
    for (std::size_t b = 0; b < p_.column_blocks.size(); ++b) {
      double sum = 0;
      for (std::size_t q = p_.column_blocks[b].begin; q < columns_.column_end(b); ++q)
        sum += (x_[q] - x_from_[q]) * (x_[q] - x_from_[q]);
      dx += sum / steps_.column[b];
    }
    for (std::size_t r = 0; r < y_.size(); ++r)
      dy += (y_[r] - y_from_[r]) * (y_[r] - y_from_[r]) / steps_.row[r];
    if (dx > 0 && dy > 0 && best_.iterations > options_.check_every)
      weight_ = std::sqrt(weight_ * std::sqrt(dx / dy));
    x_from_ = x_;
    y_from_ = y_;
    std::ranges::fill(x_sum_, 0.0);
    std::ranges::fill(y_sum_, 0.0);
    std::ranges::fill(load_sum_, 0.0);
    since_ = 0;
  }

  const Problem& p_;
  const Options options_;
  const Columns<Index, is_weighted> columns_;
  const Steps steps_;
  double weight_ = 1, began_ = 0, pace_ = 1;
  std::vector<double> x_, y_, price_, sigma_;
  std::vector<double> x_next_, y_next_;             // in X and Y; x and y go beyond them
  std::vector<double> load_old_, load_, load_sum_;  // without scale and offset
  std::vector<double> x_sum_, y_sum_, x_from_, y_from_;
  std::vector<std::uint32_t> scratch_;
  double gap_last_ = unbounded, gap_restart_ = unbounded;
  std::uint32_t since_ = 0;
  Answer best_;
};

constexpr std::size_t narrow_max = 65'536;

void check_problem(const Problem& p) {
  WEFT_CHECK(p.entry_begin.size() == p.column_count() + 1 && p.offset.size() == p.row_count());
  WEFT_CHECK(p.entry_begin.back() == p.entries.size() && !p.row_blocks.empty());
  WEFT_CHECK(p.weights.empty() || p.weights.size() == p.entries.size());
  for (const RowBlock& block : p.row_blocks) {
    if (block.high != unbounded) continue;
    WEFT_CHECK(p.groups.empty() && p.weights.empty());
    for (const ColumnBlock& c : p.column_blocks) WEFT_CHECK(c.fill == Fill::at_most);
    break;
  }
}

}  // namespace

Answer solve(const Problem& problem, const Options& options, const Start* start) {
  check_problem(problem);
  if (!problem.weights.empty()) return Solver<std::uint32_t, true>(problem, options, start).run();
  if (problem.row_count() <= narrow_max)
    return Solver<std::uint16_t, false>(problem, options, start).run();
  return Solver<std::uint32_t, false>(problem, options, start).run();
}

double bound_of(const Problem& problem, const std::vector<double>& y) {
  if (!problem.weights.empty()) return Columns<std::uint32_t, true>(problem).bound(y);
  return Columns<std::uint32_t, false>(problem).bound(y);
}

double value_of(const Problem& problem, const std::vector<double>& x) {
  const auto of = [&](const auto& columns) { return columns.value(x, columns.loads(x)); };
  if (!problem.weights.empty()) return of(Columns<std::uint32_t, true>(problem));
  return of(Columns<std::uint32_t, false>(problem));
}

}  // namespace weft::saddle
