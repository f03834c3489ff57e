#include "model/fabric/max_flow.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::model {

void MaxFlow::add_edge(Vertex a, Vertex b, Amount forward, Amount backward) {
  WEFT_DCHECK(a < vertices_ && b < vertices_ && forward >= 0 && backward >= 0);
  edges_.push_back({a, b, std::min(forward, unlimited), std::min(backward, unlimited)});
}

void MaxFlow::index_arcs() {
  first_.assign(vertices_ + 1, 0);
  for (const Edge& edge : edges_) {
    ++first_[edge.a + 1];
    ++first_[edge.b + 1];
  }
  for (std::size_t v = 0; v < vertices_; ++v) first_[v + 1] += first_[v];
  arcs_.resize(2 * edges_.size());
  left_.resize(2 * edges_.size());
  std::vector<std::uint32_t> place(first_.begin(), first_.end() - 1);
  for (std::uint32_t e = 0; e < edges_.size(); ++e) {
    const std::uint32_t there = 2 * e, back = there + 1;
    arcs_[place[edges_[e].a]++] = there;
    arcs_[place[edges_[e].b]++] = back;
    left_[there] = edges_[e].forward;
    left_[back] = edges_[e].backward;
  }
}

bool MaxFlow::find_levels(Vertex source, Vertex sink) {
  level_.assign(vertices_, unseen);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t at = 0; at < queue_.size() && level_[sink] == unseen; ++at) {
    const Vertex v = queue_[at];
    for (std::uint32_t i = first_[v]; i < first_[v + 1]; ++i) {
      const std::uint32_t arc = arcs_[i];
      const Vertex to = (arc & 1) != 0 ? edges_[arc / 2].a : edges_[arc / 2].b;
      if (work_left_ > 0) --work_left_;
      if (left_[arc] == 0 || level_[to] != unseen) continue;
      level_[to] = level_[v] + 1;
      queue_.push_back(to);
    }
  }
  return level_[sink] != unseen;
}

// Sends what the tightest arc of the path allows and cuts the path back to before that arc.
MaxFlow::Amount MaxFlow::augment() {
  Amount amount = unlimited;
  for (const std::uint32_t arc : path_) amount = std::min(amount, left_[arc]);
  std::size_t keep = path_.size();
  for (std::size_t i = path_.size(); i-- > 0;) {
    left_[path_[i]] -= amount;
    left_[path_[i] ^ 1u] += amount;
    if (left_[path_[i]] == 0) keep = i;
  }
  path_.resize(keep);
  return amount;
}

MaxFlow::Amount MaxFlow::block(Vertex source, Vertex sink) {
  next_.assign(first_.begin(), first_.end() - 1);
  path_.clear();
  Amount sent = 0;
  const auto head = [&](std::uint32_t arc) {
    return (arc & 1) != 0 ? edges_[arc / 2].a : edges_[arc / 2].b;
  };
  Vertex v = source;
  while (work_left_ > 0) {
    if (v == sink) {
      sent = std::min(sent + augment(), unlimited);
      v = path_.empty() ? source : head(path_.back());
      continue;
    }
    if (next_[v] == first_[v + 1]) {  // a dead end
      if (v == source) return sent;
      v = head(path_.back() ^ 1u);
      path_.pop_back();
      ++next_[v];
      continue;
    }
    const std::uint32_t arc = arcs_[next_[v]];
    --work_left_;
    if (left_[arc] > 0 && level_[head(arc)] == level_[v] + 1) {
      path_.push_back(arc);
      v = head(arc);
    } else {
      ++next_[v];
    }
  }
  return sent;
}

std::optional<MaxFlow::Amount> MaxFlow::run(Vertex source, Vertex sink, std::uint64_t work_max) {
  WEFT_CHECK(source != sink);
  work_left_ = work_max;
  index_arcs();
  Amount flow = 0;
  while (work_left_ > 0 && find_levels(source, sink))
    flow = std::min(flow + block(source, sink), unlimited);
  if (work_left_ == 0) return std::nullopt;
  return flow;
}

}  // namespace weft::model
