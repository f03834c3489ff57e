// What scalers did, as a table, JSON, CSV and a drawing.
#pragma once

#include <string>
#include <vector>

#include "plan/scale/scale.hpp"

namespace weft::plan::scale {

struct Study {
  const observe::forecast::Series& series;
  const Demand& demand;
  std::size_t from = 0;
  Service service;
  std::vector<Outcome> outcomes;
  std::vector<double> at;  // percent of violations
};

// Every policy, then the curves at equal violations: hours, and the ratio to reactive.
std::string to_table(const Study& study);
std::string to_json(const Study& study);
// time, demand, then a column of serving replicas for each policy.
std::string to_csv(const Study& study);
// Demand and what the first policy of each kind could serve, with the violated steps marked. Where
// curves were run, those policies that come nearest to the middle of `at`. Light or dark as the
// viewer prefers.
std::string to_svg(const Study& study);
// What that drawing shows: hours of a column, and of each policy the demand and what it could serve
// below the limit, by column.
std::string columns_json(const Study& study);

}  // namespace weft::plan::scale
