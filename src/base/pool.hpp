// A bounded set of things that threads borrow, each thing by one thread at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/result.hpp"

namespace weft {
inline namespace base {

template <class T>
class Pool {
 public:
  using Make = std::function<Result<std::unique_ptr<T>>()>;

  // A borrowed thing; goes back at the end. Must not outlive the pool.
  class Loan {
   public:
    Loan(Pool& pool, std::unique_ptr<T> item) : pool_(&pool), item_(std::move(item)) {}
    ~Loan() {
      if (item_) pool_->give_back(std::move(item_));
    }
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    T& operator*() const { return *item_; }
    T* operator->() const { return item_.get(); }

   private:
    Pool* pool_;
    std::unique_ptr<T> item_;
  };

  // Holds at most `size_max` (> 0) things. `make` may be called by several threads at once.
  Pool(std::size_t size_max, Make make) : size_max_(size_max), make_(std::move(make)) {
    WEFT_CHECK(size_max > 0);
  }

  // Waits while all are lent. Fails: as `make`.
  Result<Loan> borrow() {
    if (auto item = take_free()) return Loan(*this, std::move(item));
    auto made = make_();
    if (made) return Loan(*this, *std::move(made));
    {
      const std::lock_guard lock(mutex_);
      --size_;
    }
    changed_.notify_one();
    return std::unexpected(std::move(made).error());
  }

 private:
  // None: there is room for one more, which the caller makes.
  std::unique_ptr<T> take_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !free_.empty() || size_ < size_max_; });
    if (free_.empty()) {
      ++size_;
      return nullptr;
    }
    auto item = std::move(free_.back());
    free_.pop_back();
    return item;
  }
  void give_back(std::unique_ptr<T> item) {
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(item));
    }
    changed_.notify_one();
  }

  const std::size_t size_max_;
  const Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<T>> free_;
  std::size_t size_ = 0;  // made, or being made
};

}  // namespace base
}  // namespace weft
