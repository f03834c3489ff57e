#include "plan/edge/program.hpp"

#include <algorithm>

namespace weft::plan::edge {
namespace {

class Builder {
 public:
  Builder(const Problem& problem, const Caches& caches, const ProgramOptions& options)
      : problem_(problem), caches_(caches), options_(options) {
    for (const Metro& metro : problem.metros) add_row(metro.gpus);
    for (const DataCentre& centre : problem.data_centres) add_row(centre.gpus);
    for (const Metro& metro : problem.metros) add_row(metro.uplink_bps);
    out_.linear.entry_begin.push_back(0);
    out_.largest.assign(out_.capacity.size(), 1.0);
  }

  Program build() && {
    for (std::uint32_t a = 0; a < problem_.areas.size(); ++a)
      for (std::uint32_t s = 0; s < problem_.services.size(); ++s)
        if (problem_.areas[a].requests[s] > 0) add_block(a, s);
    finish();
    return std::move(out_);
  }

 private:
  void add_row(double capacity) {
    out_.linear.row_blocks.push_back(
        {static_cast<std::uint32_t>(out_.capacity.size()), 0, 0, 1 - options_.margin});
    out_.linear.scale.push_back(1);
    out_.linear.offset.push_back(0);
    out_.capacity.push_back(capacity * problem_.use_max);
  }

  void add_block(std::uint32_t area, std::uint32_t service) {
    const auto begin = static_cast<std::uint32_t>(out_.ways.size());
    out_.linear.column_blocks.push_back({begin, 1});
    for (std::uint32_t m = 0; m < problem_.metros.size(); ++m) {
      if (options_.down == m) continue;
      if (problem_.services[service].gpu_s > 0) add_way({area, service, m, at_metro, 1});
      for (std::uint32_t d = 0; d < problem_.data_centres.size(); ++d)
        add_way({area, service, m, d, 1});
    }
    double dearest = 0;
    for (std::size_t q = begin; q < out_.ways.size(); ++q)
      dearest = std::max(dearest, out_.cost[q]);
    if (options_.is_count) std::fill(out_.cost.begin() + begin, out_.cost.end(), 0.0);
    add_column({area, service, nowhere, nowhere, 1},
               options_.is_count ? problem_.areas[area].requests[service] : dearest);
    dearest_ = std::max(dearest_, dearest);
  }

  void add_way(const Way& way) {
    const Use use = use_of(problem_, caches_, way);
    if (use.rtt_s > problem_.services[way.service].within_s) return;
    const std::size_t metros = problem_.metros.size();
    const std::size_t gpu_row = way.centre == at_metro ? way.metro : metros + way.centre;
    const std::size_t uplink_row = metros + problem_.data_centres.size() + way.metro;
    if ((use.gpus > 0 && out_.capacity[gpu_row] <= 0) ||
        (use.uplink_bps > 0 && out_.capacity[uplink_row] <= 0))
      return;
    // Nothing that is missed: no load, but the entry stays, as it does for other caches.
    if (out_.capacity[gpu_row] > 0) add_entry(gpu_row, use.gpus);
    if (way.centre != at_metro && out_.capacity[uplink_row] > 0)
      add_entry(uplink_row, use.uplink_bps);
    add_column(way, use.cost());
  }

  void add_entry(std::size_t row, double load) {
    out_.linear.entries.push_back(static_cast<std::uint32_t>(row));
    out_.linear.weights.push_back(load / out_.capacity[row]);
  }
  void add_column(const Way& way, double cost) {
    out_.ways.push_back(way);
    out_.cost.push_back(cost);
    out_.linear.entry_begin.push_back(static_cast<std::uint32_t>(out_.linear.entries.size()));
  }

  // Penalties, and prices up to which no row's excess pays.
  void finish() {
    double sum = 0;
    for (std::size_t b = 0; b < out_.linear.column_blocks.size(); ++b) {
      const std::size_t begin = out_.linear.column_blocks[b].begin, last = out_.block_end(b) - 1;
      sum += begin < last
                 ? *std::min_element(out_.cost.begin() + static_cast<std::ptrdiff_t>(begin),
                                     out_.cost.begin() + static_cast<std::ptrdiff_t>(last))
                 : 0;
      double& penalty = out_.cost[last];
      if (!options_.is_count)
        penalty = options_.penalty * (penalty > 0 ? penalty : dearest_ > 0 ? dearest_ : 1);
      for (std::size_t q = begin; q < last; ++q)
        for (std::size_t k = 0; k < out_.rows(q).size(); ++k)
          if (const double load = out_.load(q, k); load > 1e-9)
            raise(out_.linear.row_blocks[out_.rows(q)[k]].high, 1.01 * penalty / load);
    }
    const auto blocks = static_cast<double>(out_.linear.column_blocks.size());
    if (options_.is_count)
      for (std::size_t b = 0; b < out_.linear.column_blocks.size(); ++b)
        sum += out_.cost[out_.block_end(b) - 1];
    out_.unit = sum > 0 ? sum / blocks : dearest_ > 0 ? dearest_ : 1;
    for (const double cost : out_.cost) out_.linear.cost.push_back(cost / out_.unit);
    scale_rows();
  }
  // Columns may load a small pool many times over, and all rows should weigh the same.
  void scale_rows() {
    std::vector<double> largest(out_.capacity.size(), 0.0);
    for (std::size_t e = 0; e < out_.linear.weights.size(); ++e)
      raise(largest[out_.linear.entries[e]], out_.linear.weights[e]);
    for (double& one : largest)
      if (one <= 0) one = 1;
    for (std::size_t e = 0; e < out_.linear.weights.size(); ++e)
      out_.linear.weights[e] /= largest[out_.linear.entries[e]];
    for (std::size_t r = 0; r < largest.size(); ++r) {
      saddle::RowBlock& row = out_.linear.row_blocks[r];
      row.limit /= largest[r];
      row.high = row.high / out_.unit * largest[r] + 1;
    }
    out_.largest = std::move(largest);
  }
  static void raise(double& value, double to) { value = std::max(value, to); }

  const Problem& problem_;
  const Caches& caches_;
  const ProgramOptions options_;
  Program out_;
  double dearest_ = 0;
};

}  // namespace

double missed(const Problem& problem, const Caches& caches, std::size_t metro,
              std::size_t service) {
  return 1 - problem.services[service].content.share * caches.hit[problem.at(metro, service)];
}

Use use_of(const Problem& problem, const Caches& caches, const Way& way) {
  const Service& service = problem.services[way.service];
  const Metro& metro = problem.metros[way.metro];
  const double requests = problem.areas[way.area].requests[way.service];
  const double misses = requests * missed(problem, caches, way.metro, way.service);
  const double to_metro = problem.rtt(way.area, way.metro);
  Use out{.gpus = misses * service.gpu_s, .rtt_s = to_metro};
  double delay = requests * to_metro;
  if (way.centre == at_metro) {
    out.gpu_cost = out.gpus * metro.gpu_price;
  } else {
    const double on = problem.rtt_on(way.metro, way.centre);
    out.gpu_cost = out.gpus * problem.data_centres[way.centre].gpu_price;
    out.uplink_bps = misses * service.response_bytes * 8;
    out.uplink_cost = misses * service.response_bytes * 3600 / 1e9 * metro.uplink_price;
    out.rtt_s += on;
    delay += misses * on;
  }
  out.delay_cost = delay * 3600 * 1e3 / 1e6 * problem.delay_price;
  return out;
}

Program make_program(const Problem& problem, const Caches& caches, const ProgramOptions& options) {
  return Builder(problem, caches, options).build();
}

}  // namespace weft::plan::edge
