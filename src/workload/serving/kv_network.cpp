#include "workload/serving/kv_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::workload {
namespace {

constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
constexpr double longest_ps = 1e18;  // of one wait; what is left then waits again
constexpr double unlimited = std::numeric_limits<double>::infinity();

}  // namespace

KvNetwork::KvNetwork(std::vector<double> links)
    : links_(std::move(links)), carried_(links_.size(), 0), next_{end_of_time} {
  for (double& link : links_) link = link > 0 ? link : unlimited;
}

// Progressive filling: the tightest link fixes the rates of its transfers, then the next one.
void KvNetwork::solve() {
  std::vector<double> room = links_;
  std::vector<double> shares(links_.size(), 0);  // of transfers whose rate is open
  std::vector<Transfer*> open;
  for (Transfer& one : transfers_) {
    one.rate = unlimited;
    if (one.left <= 0) continue;
    open.push_back(&one);
    for (const Use& use : one.way.links) shares[use.link] += use.share;
  }
  // The rate that a link leaves to a transfer, of which it carries a share.
  const auto fair = [&](const Use& use) {
    return use.share > 0 ? std::max(0.0, room[use.link]) / shares[use.link] : unlimited;
  };
  while (!open.empty()) {
    double least = unlimited;
    for (const Transfer* one : open)
      for (const Use& use : one->way.links) least = std::min(least, fair(use));
    if (least == unlimited) break;
    const auto is_open = [&](const Transfer* one) {
      return std::ranges::none_of(one->way.links,
                                  [&](const Use& use) { return fair(use) <= least * (1 + 1e-12); });
    };
    const auto rest = std::stable_partition(open.begin(), open.end(), is_open);
    for (auto one = rest; one != open.end(); ++one) {
      (*one)->rate = least;
      for (const Use& use : (*one)->way.links) {
        room[use.link] -= least * use.share;
        shares[use.link] -= use.share;
      }
    }
    open.erase(rest, open.end());
  }
  next_ = {end_of_time};
  for (Transfer& one : transfers_) {
    if (one.left > 0 && one.rate == unlimited) {
      for (const Use& use : one.way.links) carried_[use.link] += one.left * use.share;
      one.left = 0;
      one.arrives = now_ + one.way.latency;
    }
    const double left_ps = std::min(std::ceil(one.left / one.rate * 1e12), longest_ps);
    next_ = std::min(
        next_, one.left > 0 ? now_ + Duration{static_cast<std::int64_t>(left_ps)} : one.arrives);
  }
}

void KvNetwork::advance(Time now) {
  const double span = (now - now_).seconds();
  now_ = now;
  for (Transfer& one : transfers_) {
    if (one.left <= 0) continue;
    // What is left of the last picosecond's bytes is gone with it.
    double moved = std::min(one.left, one.rate * span);
    if (one.left - moved <= one.rate * 1e-12) moved = one.left;
    for (const Use& use : one.way.links) carried_[use.link] += moved * use.share;
    one.left -= moved;
    if (one.left <= 0) one.arrives = now + one.way.latency;
  }
}

void KvNetwork::start(std::uint32_t id, const Way& way, std::uint64_t bytes, Time now) {
  advance(now);
  transfers_.push_back({id, way, static_cast<double>(bytes), 0, now + way.latency});
  solve();
}

std::vector<std::uint32_t> KvNetwork::step() {
  advance(next_);
  std::vector<std::uint32_t> out;
  for (const Transfer& one : transfers_)
    if (one.left <= 0 && one.arrives <= now_) out.push_back(one.id);
  std::erase_if(transfers_,
                [&](const Transfer& one) { return one.left <= 0 && one.arrives <= now_; });
  solve();
  return out;
}

}  // namespace weft::workload
