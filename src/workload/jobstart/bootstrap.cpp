#include "workload/jobstart/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace weft::workload {
namespace {

constexpr std::int64_t count_max = 1'000'000;

std::uint64_t ceil_div(std::uint64_t of, std::uint64_t by) { return of / by + (of % by != 0); }

double seconds_of(double count, Duration each) { return count * each.seconds(); }

double root_seconds(const BootstrapModel& model, std::uint64_t ranks, double round_trip_s) {
  const std::uint64_t roots = model.ranks_per_root == 0 ? 1 : ceil_div(ranks, model.ranks_per_root);
  const auto answers = static_cast<double>(ceil_div(ranks, roots));
  const double reports = answers + (roots > 1 ? 1 : 0);
  return 1.5 * round_trip_s + seconds_of(reports, model.root_service) +
         answers * (round_trip_s + model.root_service.seconds()) + 0.5 * round_trip_s;
}

// Round one edge of the ring in one exchange.
std::uint64_t passed_entries(const BootstrapModel& model, std::uint64_t ranks) {
  return model.exchange == BootstrapExchange::both_ways ? ceil_div(ranks - 1, 2) : ranks - 1;
}

double exchange_seconds(const BootstrapModel& model, std::uint64_t ranks, double round_trip_s) {
  const std::uint64_t passed = passed_entries(model, ranks);
  std::uint64_t steps = passed;
  if (model.exchange == BootstrapExchange::tree)
    steps = static_cast<std::uint64_t>(std::bit_width(ranks - 1));
  const double step_s = round_trip_s / 2 + model.message.seconds();
  const double bytes = static_cast<double>(passed) * static_cast<double>(model.entry.count);
  return model.exchanges * (static_cast<double>(steps) * step_s + bytes / model.rate.bytes_per_s());
}

}  // namespace

double exchange_bytes(const BootstrapModel& model, std::uint64_t ranks) {
  if (ranks < 2) return 0;
  return static_cast<double>(model.exchanges) * static_cast<double>(passed_entries(model, ranks)) *
         static_cast<double>(model.entry.count);
}

BootstrapTime& BootstrapTime::operator+=(const BootstrapTime& other) {
  store_s += other.store_s;
  root_s += other.root_s;
  connect_s += other.connect_s;
  exchange_s += other.exchange_s;
  return *this;
}

BootstrapTime bootstrap_time(const BootstrapModel& model, const Communicators& communicators,
                             Duration round_trip) {
  const std::uint64_t ranks = communicators.ranks;
  if (ranks < 2 || communicators.groups == 0) return {};
  const double r = round_trip.seconds();
  const double asking = static_cast<double>(ranks) * static_cast<double>(communicators.groups);
  return {.store_s = r + seconds_of(asking, model.store_service),
          .root_s = root_seconds(model, ranks, r),
          .connect_s = r,
          .exchange_s = exchange_seconds(model, ranks, r)};
}

BootstrapTime job_bootstrap_time(const BootstrapModel& model, std::span<const Communicators> kinds,
                                 Duration round_trip) {
  BootstrapTime sum;
  for (const Communicators& kind : kinds) sum += bootstrap_time(model, kind, round_trip);
  return sum;
}

BootstrapModel read_bootstrap(const Config& section, Errors& errors) {
  Reader reader(section, "bootstrap", errors);
  BootstrapModel model;
  const std::array<std::string, 3> exchanges{"ring", "both_ways", "tree"};
  model.ranks_per_root = static_cast<std::uint32_t>(
      reader.count("ranks_per_root", model.ranks_per_root, 0, count_max));
  model.exchange = static_cast<BootstrapExchange>(reader.choice("exchange", exchanges, 0));
  model.exchanges =
      static_cast<std::uint32_t>(reader.count("exchanges", model.exchanges, 0, count_max));
  model.entry = reader.bytes("entry", model.entry);
  model.rate = reader.rate("rate", model.rate);
  if (model.rate <= Rate{})
    reader.error(Errc::value, reader.where("rate"), "bootstrap.rate must be above 0",
                 "write e.g. \"100 Gbps\"");
  model.message = reader.duration("message", model.message);
  model.root_service = reader.duration("root_service", model.root_service);
  model.store_service = reader.duration("store_service", model.store_service);
  reader.finish();
  return model;
}

}  // namespace weft::workload
