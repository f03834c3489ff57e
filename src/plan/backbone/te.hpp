// Traffic engineering of a backbone: rates on k paths for every demand, with a certified distance
// from the optimum.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "plan/backbone/paths.hpp"
#include "plan/backbone/wan.hpp"
#include "saddle/saddle.hpp"

namespace weft::plan::backbone {

enum class Objective : std::uint8_t { throughput, mlu };
inline constexpr auto objective_names = std::to_array<std::string_view>({"throughput", "mlu"});
constexpr std::span<const std::string_view> names_of(Objective) { return objective_names; }
constexpr std::string_view to_text(Objective o) { return name_of(o); }

struct TeOptions {
  Objective objective = Objective::throughput;
  std::uint32_t paths = 4;  // of each demand
  double gap = 0.01;
  bool by_class = false;  // strict priority; else all demands alike
  bool failures = false;
  std::uint32_t threads = 1;
};

// What one class gets of the room that those before it leave.
struct ClassAnswer {
  std::uint8_t priority = 0;
  std::size_t demands = 0, paths = 0, unroutable = 0;
  double asked_gbps = 0, sent_gbps = 0;
  double unroutable_gbps = 0;  // of what is asked: has no path
  // Gbit/s for throughput, use of the worst link for mlu. all_paths bounds it were there any number
  // of paths: what k costs at most.
  double value = 0, bound = 0, all_paths = 0, gap = 0;
  std::uint32_t iterations = 0;
  double seconds = 0;
  std::vector<double> price;  // of each link, that prove both bounds: see docs/commands/te.md
};

struct FailureAnswer {
  std::string name;  // of a group, or of a cable
  std::vector<std::uint32_t> cables;
  double value = 0, gap = 0;   // as in ClassAnswer, all classes alike
  double unroutable_gbps = 0;  // of demands whose sites are cut off from each other
  double seconds = 0;
};

struct TeAnswer {
  std::vector<ClassAnswer> classes;  // one, named class 4, unless by_class
  std::vector<double> load_gbps;     // of each link
  std::vector<double> price;         // of the last class that has demands
  double path_seconds = 0;
  std::vector<FailureAnswer> failures;  // from worst to best
};

TeAnswer engineer(const Wan& wan, const std::vector<Demand>& demands, const TeOptions& options);

std::string to_table(const Wan& wan, const TeAnswer& answer, const TeOptions& options,
                     std::size_t rows);
std::string to_json(const Wan& wan, const TeAnswer& answer, const TeOptions& options);
// CSV: src, dst, gbps, class, price: a row for every link and class.
std::string write_prices(const Wan& wan, const TeAnswer& answer);

}  // namespace weft::plan::backbone
