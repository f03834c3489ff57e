// The table of path health that `weft serve` writes, and gives to agents.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/live/system_clock.hpp"
#include "operate/health/advise.hpp"
#include "operate/health/book.hpp"
#include "operate/health/table.hpp"
#include "os/log.hpp"

namespace weft::cli {

// A thread that looks once a second, from the time on when somebody wants a table. When links or
// jobs have changed the new conditions are published at once, without advice, and again whenever
// the advice for one more kind of collectives has been computed, so that tables never grow old.
class ServedHealth {
 public:
  struct Parts {
    const plan::Setup& setup;  // must outlive it
    std::uint64_t seed;
    std::vector<std::string> files;  // may be none
    std::function<operate::health::Conditions()> conditions;
    std::function<std::vector<operate::health::Call>()> calls;
    LogSink say;
  };
  // Fails: as Publisher::open.
  static Result<std::unique_ptr<ServedHealth>> open(Parts parts);
  ServedHealth(Parts parts, std::vector<operate::health::Publisher> files);  // for open()

  // The last table, as bytes. Any thread. Fails: Errc::io before the first, which this asks for.
  Result<std::string> table();

 private:
  void run(const std::stop_token& stop);
  void look(const std::stop_token& stop);
  void advise(const std::stop_token& stop);
  void publish(const operate::health::Conditions& conditions);
  void report(std::string line);

  Parts parts_;
  std::vector<operate::health::Publisher> files_;
  adapt::live::SystemClock clock_;
  // Of the thread.
  struct Known {
    model::State state;
    std::vector<operate::health::Call> calls;
  };
  std::optional<Known> known_;  // what the advice is for
  operate::health::Advised advised_;
  std::string reported_;
  // Of all threads.
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool is_wanted_;
  std::string table_;
  std::jthread thread_;
};

}  // namespace weft::cli
