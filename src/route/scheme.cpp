#include "route/scheme.hpp"

#include <array>
#include <string>

#include "base/check.hpp"

namespace weft::route {
namespace {

using enum SchemeEngine;
constexpr std::array<SchemeRow, 14> schemes{{
    {"ecmp", QpField::ignored, any, make_ecmp},
    {"e_ecmp", QpField::hashed, any, make_e_ecmp},
    {"pinned", QpField::ignored, any, make_pinned},
    {"spray", QpField::ignored, any, make_spray},
    {"optimal", QpField::ignored, fluid, make_optimal},
    {"minimal", QpField::hashed, any, make_minimal},
    {"valiant", QpField::hashed, any, make_valiant},
    {"ugal", QpField::hashed, any, make_ugal},
    {"ugal_g", QpField::hashed, any, make_ugal_g},
    {"flowlet", QpField::hashed, packet, make_e_ecmp},
    {"adaptive", QpField::ignored, packet, make_spray},
    {"reps", QpField::ignored, packet, make_spray},
    {"multipath", QpField::ignored, packet, make_ecmp},
    {"te", QpField::hashed, any, make_te},
}};

}  // namespace

const SchemeRow* find_scheme(std::string_view name) {
  const auto* row = std::ranges::find(schemes, name, &SchemeRow::name);
  return row == schemes.end() ? nullptr : row;
}

SchemeEngine engine_of(std::string_view scheme) {
  const SchemeRow* row = find_scheme(scheme);
  WEFT_CHECK(row != nullptr);
  return row->engine;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeRow& row : schemes) names.emplace_back(row.name);
  return names;
}

}  // namespace weft::route
