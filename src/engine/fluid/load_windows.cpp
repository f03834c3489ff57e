#include "engine/fluid/load_windows.hpp"

#include <utility>

namespace weft::engine::fluid {
namespace {

void add(const std::vector<float>& more, std::vector<float>& to) {
  if (to.size() < more.size()) to.resize(more.size(), 0);
  for (std::size_t r = 0; r < more.size(); ++r) to[r] += more[r];
}

}  // namespace

void LoadWindows::double_width() {
  width_ *= 2;
  if (bytes_.size() % 2 == 1) {  // the last one has only half of its new length yet
    add(bytes_.back(), open_);
    bytes_.pop_back();
  }
  for (std::size_t i = 0; i < bytes_.size(); i += 2) {
    add(bytes_[i + 1], bytes_[i]);
    if (i > 0) bytes_[i / 2] = std::move(bytes_[i]);
  }
  bytes_.resize(bytes_.size() / 2);
}

void LoadWindows::close_interval() {
  before_.resize(now_.size(), 0);
  std::vector<float>& out = bytes_.emplace_back(now_.size());
  for (std::size_t r = 0; r < now_.size(); ++r) out[r] = static_cast<float>(now_[r] - before_[r]);
  add(open_, out);
  open_.clear();
  before_.swap(now_);
}

}  // namespace weft::engine::fluid
