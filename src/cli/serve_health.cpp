#include "cli/serve_health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::cli {

namespace health = operate::health;

namespace {

constexpr std::chrono::seconds every{1};

bool same(const health::Call& a, const health::Call& b) {
  return a.job == b.job && a.op == b.op && a.groups == b.groups && a.bytes == b.bytes;
}

// Losses are estimates that every look refines, and advice does not hang on their last digits.
bool same(const model::Condition& a, const model::Condition& b) {
  constexpr double apart = 1.5;
  return a.health == b.health && a.rate_factor == b.rate_factor && a.loss <= apart * b.loss &&
         b.loss <= apart * a.loss;
}

bool same(const model::State& a, const model::State& b) {
  return a.troubled_nodes() == b.troubled_nodes() &&
         std::ranges::equal(a.troubled_links(), b.troubled_links(),
                            [](const auto& x, const auto& y) {
                              return x.first == y.first && same(x.second, y.second);
                            });
}

}  // namespace

Result<std::unique_ptr<ServedHealth>> ServedHealth::open(Parts parts) {
  std::vector<health::Publisher> files;
  for (const std::string& path : parts.files) {
    WEFT_TRY(health::Publisher file, health::Publisher::open(path));
    files.push_back(std::move(file));
  }
  return std::make_unique<ServedHealth>(std::move(parts), std::move(files));
}

ServedHealth::ServedHealth(Parts parts, std::vector<health::Publisher> files)
    : parts_(std::move(parts)),
      files_(std::move(files)),
      is_wanted_(!files_.empty()),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Result<std::string> ServedHealth::table() {
  const std::scoped_lock lock(mutex_);
  is_wanted_ = true;
  wake_.notify_all();
  if (table_.empty())
    return fail(Errc::io, {}, "the first table of path health is being made", "ask again");
  return table_;
}

void ServedHealth::run(const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    if (!wake_.wait(lock, stop, [this] { return is_wanted_; })) return;
  }
  while (!stop.stop_requested()) {
    look(stop);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, every, [] { return false; });
  }
}

void ServedHealth::look(const std::stop_token& stop) {
  const health::Conditions conditions = parts_.conditions();
  Known now{health::state_of(conditions), {}};
  // On a network that is well nobody needs advice.
  if (!now.state.healthy()) now.calls = parts_.calls();
  const bool is_known = known_ && same(known_->state, now.state) &&
                        std::ranges::equal(known_->calls, now.calls,
                                           [](const auto& a, const auto& b) { return same(a, b); });
  if (is_known) return publish(conditions);
  known_ = std::move(now);
  advised_ = {};
  publish(conditions);
  advise(stop);
}

// What has changed meanwhile is published as it is, and ends what is no longer true.
void ServedHealth::advise(const std::stop_token& stop) {
  for (const health::Call& call : known_->calls) {
    if (stop.stop_requested()) return;
    const auto more = health::advise(parts_.setup, {&call, 1}, known_->state, parts_.seed);
    const health::Conditions conditions = parts_.conditions();
    if (!same(health::state_of(conditions), known_->state)) return known_.reset();
    if (!more) {
      report("no advice: " + more.error().text());
      publish(conditions);
      continue;
    }
    advised_.too_large += more->too_large;
    if (advised_.rows.size() + more->rows.size() > health::layout::advice_max)
      ++advised_.no_room;
    else
      advised_.rows.insert(advised_.rows.end(), more->rows.begin(), more->rows.end());
    publish(conditions);
  }
  if (advised_.too_large + advised_.no_room > 0)
    report(
        fmt::format("no advice for {} kinds of collectives of more than {} ranks, and for {} "
                    "that the table has no room for",
                    advised_.too_large, health::ranks_max, advised_.no_room));
}

void ServedHealth::publish(const health::Conditions& conditions) {
  health::HealthTable table = health::table_of(parts_.setup.fabric, conditions, clock_.wall());
  table.advice = advised_.rows;
  std::string bytes = health::encode(table);
  for (health::Publisher& file : files_)
    if (const Status done = file.publish(bytes); !done) report(done.error().text());
  const std::scoped_lock lock(mutex_);
  table_ = std::move(bytes);
}

// The same is not said every second.
void ServedHealth::report(std::string line) {
  if (line == reported_) return;
  parts_.say(LogLevel::warning, "path health: " + line);
  reported_ = std::move(line);
}

}  // namespace weft::cli
