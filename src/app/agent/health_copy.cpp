#include "app/agent/health_copy.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace weft::app {
namespace {

namespace health = operate::health;
namespace live = adapt::live;

constexpr std::chrono::milliseconds health_patience{2'000};

}  // namespace

Result<std::unique_ptr<HealthCopy>> HealthCopy::open(HealthCopySettings settings) {
  std::vector<health::Publisher> files;
  for (const std::string& path : settings.files) {
    WEFT_TRY(health::Publisher file, health::Publisher::open(path));
    files.push_back(std::move(file));
  }
  return std::make_unique<HealthCopy>(std::move(settings), std::move(files));
}

HealthCopy::HealthCopy(HealthCopySettings settings, std::vector<health::Publisher> files)
    : settings_(std::move(settings)),
      files_(std::move(files)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void HealthCopy::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Status copied = copy();
    if (!copied) client_.reset();
    if (copied.has_value() == is_told_)
      fmt::print(
          stderr, "weft agent: path health {}\n",
          copied ? std::string("is copied again") : "is not copied: " + copied.error().text());
    is_told_ = !copied.has_value();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, std::chrono::nanoseconds(settings_.interval_ns),
                   [] { return false; });
  }
}

Status HealthCopy::copy() {
  if (!client_) {
    WEFT_TRY(client_, live::open_service(settings_.service, settings_.tls, health_patience));
  }
  WEFT_TRY(const std::string table,
           live::get_text(*client_, "/v1/path-health", settings_.token, health_patience));
  if (const auto known = health::decode(table, settings_.service.url); !known)
    return std::unexpected(known.error());
  for (health::Publisher& file : files_) WEFT_TRY_STATUS(file.publish(table));
  return {};
}

}  // namespace weft::app
