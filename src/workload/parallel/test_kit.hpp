// For tests of this room: models and GPUs by name.
#pragma once

#include <doctest/doctest.h>

#include <string_view>
#include <utility>
#include <variant>

#include "workload/parallel/gpu.hpp"
#include "workload/parallel/model_spec.hpp"

namespace weft::workload::testing {

inline TransformerSpec preset(std::string_view name) {
  auto model = model_by_name({name, {}});
  REQUIRE_MESSAGE(model.has_value(), name);
  return std::get<TransformerSpec>(*std::move(model));
}

inline GpuSpec h100() { return gpu_by_name({"h100", {}}).value(); }

}  // namespace weft::workload::testing
