#include "engine/packet/loads.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::engine::packet {
namespace {

constexpr Ps first_width = 1 << 16;  // 66 ns: less than a packet needs

void add_to(std::vector<float>& sum, const std::vector<float>& more) {
  if (sum.size() < more.size()) sum.resize(more.size(), 0);
  for (std::size_t k = 0; k < more.size(); ++k) sum[k] += more[k];
}

// Of an even number of intervals.
void double_width(LinkLoads& loads) {
  std::vector<std::vector<float>>& bytes = loads.bytes;
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    add_to(bytes[2 * i], bytes[2 * i + 1]);
    if (i > 0) bytes[i] = std::move(bytes[2 * i]);
  }
  bytes.resize(bytes.size() / 2);
  loads.width *= 2;
}

}  // namespace

LoadRecorder::LoadRecorder(std::size_t most) : most_(most / 2 * 2) {
  if (most_ == 0) return;
  loads_.width = first_width;
  next_ = first_width;
}

void LoadRecorder::close_interval() {
  before_.resize(now_.size(), 0);
  std::vector<float>& out = loads_.bytes.emplace_back(now_.size());
  for (std::size_t k = 0; k < now_.size(); ++k) {
    WEFT_CHECK(now_[k] >= before_[k]);
    out[k] = static_cast<float>(now_[k] - before_[k]);
  }
  before_.swap(now_);
  if (loads_.bytes.size() == most_) double_width(loads_);
  // Beyond what is reached, and within a Ps.
  next_ = loads_.width < never / (2 * most_) ? loads_.width * (loads_.bytes.size() + 1) : never;
}

LinkLoads LoadRecorder::finish(std::span<const std::uint32_t> links) {
  loads_.links.assign(links.begin(), links.end());
  for (const std::vector<float>& bytes : loads_.bytes) add_to(loads_.total, bytes);
  return std::move(loads_);
}

LoadSum::LoadSum(std::size_t most, std::size_t link_count) : most_(most / 2 * 2) {
  loads_.width = first_width;
  for (std::uint32_t id = 0; id < link_count; ++id) loads_.links.push_back(id);
}

void LoadSum::add(Ps start, const LinkLoads& part) {
  if (part.bytes.empty() || most_ == 0) return;
  std::vector<std::vector<float>>& sums = loads_.bytes;
  const Ps end = start + part.width * part.bytes.size();
  while (end > loads_.width * most_) {
    sums.resize((sums.size() + 1) / 2 * 2);
    double_width(loads_);
  }
  const Ps width = loads_.width;
  if (sums.size() < (end - 1) / width + 1) sums.resize((end - 1) / width + 1);
  const auto add = [&](Ps window, const std::vector<float>& bytes, double share) {
    std::vector<float>& sum = sums[window];
    sum.resize(loads_.links.size(), 0);
    for (std::size_t k = 0; k < bytes.size(); ++k)
      sum[part.links[k]] += static_cast<float>(share) * bytes[k];
  };
  if (start / width == (end - 1) / width) return add(start / width, part.total, 1);
  for (std::size_t i = 0; i < part.bytes.size(); ++i) {
    const Ps from = start + part.width * i, to = from + part.width;
    for (Ps w = from / width; w <= (to - 1) / width; ++w) {
      const Ps both = std::min(to, width * (w + 1)) - std::max(from, width * w);
      add(w, part.bytes[i], static_cast<double>(both) / static_cast<double>(part.width));
    }
  }
}

}  // namespace weft::engine::packet
