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
  column_of_.resize(now_.size(), none);
  std::vector<float>& out = bytes_.emplace_back(column_count_);
  for (std::size_t r = 0; r < now_.size(); ++r) {
    if (column_of_[r] == none) {
      if (now_[r] == 0) continue;
      column_of_[r] = column_count_++;
      out.push_back(0);
    }
    out[column_of_[r]] = static_cast<float>(now_[r] - before_[r]);
  }
  out.shrink_to_fit();
  add(open_, out);
  open_.clear();
  before_.swap(now_);
}

std::vector<float> LoadWindows::bytes(std::size_t i) const {
  std::vector<float> out(column_of_.size(), 0);
  for (std::size_t r = 0; r < out.size(); ++r)
    if (column_of_[r] < bytes_[i].size()) out[r] = bytes_[i][column_of_[r]];
  return out;
}

}  // namespace weft::engine::fluid
