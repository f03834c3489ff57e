// The same flows on both engines, and what makes the difference, on standard output.
#pragma once

#include "plan/flows/surplus.hpp"

namespace weft::cli {

void print_comparison(const plan::FlowsResult& fluid, const plan::FlowsResult& packet,
                      const plan::Surplus& surplus);
void print_comparison_json(const plan::FlowsResult& fluid, const plan::FlowsResult& packet,
                           const plan::Surplus& surplus);

}  // namespace weft::cli
