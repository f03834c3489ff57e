#include "route/scheme.hpp"

#include <array>
#include <string>

namespace weft::route {
namespace {

constexpr std::array<SchemeRow, 9> registry{{
    {"ecmp", QpField::ignored, make_ecmp},
    {"e_ecmp", QpField::hashed, make_e_ecmp},
    {"pinned", QpField::ignored, make_pinned},
    {"spray", QpField::ignored, make_spray},
    {"optimal", QpField::ignored, make_optimal},
    {"minimal", QpField::hashed, make_minimal},
    {"valiant", QpField::hashed, make_valiant},
    {"ugal", QpField::hashed, make_ugal},
    {"ugal_g", QpField::hashed, make_ugal_g},
}};

}  // namespace

const SchemeRow* find_scheme(std::string_view name) {
  const auto* row = std::ranges::find(registry, name, &SchemeRow::name);
  return row == registry.end() ? nullptr : row;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeRow& row : registry) names.emplace_back(row.name);
  return names;
}

}  // namespace weft::route
