#include "operate/snapshot/collect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace weft::operate::snapshot {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds grace{200};
constexpr Milliseconds patience_least{20};  // not worth asking for less

// Takes the text down to `bytes`, at the end of a log its end.
void cut(port::StatePiece& piece, std::size_t bytes) {
  if (piece.text.size() <= bytes) return;
  piece.is_cut = true;
  if (piece.name.find("log") != std::string::npos) {
    piece.text.erase(0, piece.text.size() - bytes);
  } else {
    piece.text.resize(bytes);
  }
}

// Whatever the devices were asked for, no more than this is kept.
void bound(std::vector<DeviceAnswer>& answers, const Limits& limits) {
  std::size_t left = limits.bytes_max;
  for (DeviceAnswer& answer : answers) {
    std::size_t own = std::min(left, limits.device_bytes_max);
    for (port::StatePiece& piece : answer.pieces) {
      cut(piece, std::min(own, limits.piece_bytes_max));
      own -= piece.text.size();
      left -= piece.text.size();
    }
  }
}

}  // namespace

// What the threads of one round share, those that were given up included.
struct Collector::Round {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> names;  // never changes
  std::vector<DeviceAnswer> answers;
  std::size_t next = 0, finished = 0, threads = 0;
  bool is_over = false;
  Clock::time_point start, deadline;
  std::size_t bytes_max = 0;

  // The next device to ask, or names.size().
  std::size_t take() {
    const std::scoped_lock lock(mutex);
    return is_over || next >= names.size() ? names.size() : next++;
  }

  void finish(std::size_t i, std::vector<port::StatePiece> pieces, std::string error) {
    const std::scoped_lock lock(mutex);
    if (!is_over) {
      answers[i].pieces = std::move(pieces);
      answers[i].error = std::move(error);
      answers[i].took = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
      ++finished;
    }
    changed.notify_all();
  }

  void ask(port::DeviceState& devices, std::size_t i) {
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    if (left < patience_least) return finish(i, {}, "there was no time left to query it");
    try {
      auto pieces = devices.collect(names[i], left, bytes_max);
      if (pieces) return finish(i, std::move(*pieces), "");
      finish(i, {}, pieces.error().text());
    } catch (const std::exception& error) {
      finish(i, {}, error.what());
    }
  }

  void work(port::DeviceState& devices) {
    for (std::size_t i = take(); i < names.size(); i = take()) ask(devices, i);
    const std::scoped_lock lock(mutex);
    --threads;
  }
};

Collector::Collector(std::shared_ptr<port::DeviceState> devices) : devices_(std::move(devices)) {}

std::vector<DeviceAnswer> Collector::collect(const std::vector<Asked>& asked,
                                             const Limits& limits) {
  const auto round = std::make_shared<Round>();
  round->start = Clock::now();
  round->deadline = round->start + limits.patience;
  round->bytes_max = limits.piece_bytes_max;
  for (const Asked& one : asked) {
    round->names.push_back(one.device);
    round->answers.push_back({.asked = one, .pieces = {}, .error = "it did not answer in time"});
  }

  std::size_t stuck = 0;
  std::erase_if(unfinished_, [&](const std::shared_ptr<Round>& old) {
    const std::scoped_lock lock(old->mutex);
    stuck += old->threads;
    return old->threads == 0;
  });
  const std::size_t wanted =
      std::min({asked.size(), limits.at_once_max, stuck_max - std::min(stuck, stuck_max)});
  for (std::size_t i = 0; i < wanted; ++i) {
    try {
      const std::unique_lock lock(round->mutex);
      std::thread([round, devices = devices_] { round->work(*devices); }).detach();
      ++round->threads;
    } catch (const std::system_error&) {
      break;  // fewer do as well
    }
  }

  std::unique_lock lock(round->mutex);
  if (round->threads > 0)
    round->changed.wait_until(lock, round->deadline + grace,
                              [&] { return round->finished == asked.size(); });
  round->is_over = true;
  std::vector<DeviceAnswer> out = std::move(round->answers);
  if (round->threads > 0) unfinished_.push_back(round);
  lock.unlock();
  bound(out, limits);
  return out;
}

}  // namespace weft::operate::snapshot
