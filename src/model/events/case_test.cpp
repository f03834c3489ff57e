#include "model/events/case.hpp"

#include <doctest/doctest.h>

#include <set>

#include "base/text.hpp"
#include "model/fabric/fault_catalogue.hpp"

namespace weft::model {
namespace {

TEST_CASE("cases have the causes of the catalogue, and it has no others") {
  std::set<std::string_view> kinds(cause_kind_text.begin(), cause_kind_text.end());
  CHECK(kinds.erase("unknown") == 1);
  CHECK(kinds.erase("capacity") == 1);  // of several faults together
  const auto causes = fault_causes();
  CHECK(std::set<std::string_view>(causes.begin(), causes.end()) == kinds);
}

TEST_CASE("what the catalogue says of a fault are kinds of records") {
  for (const FaultEntry& entry : fault_catalogue())
    for (const std::string_view kind : split(entry.says, ' '))
      if (!kind.empty()) CHECK_MESSAGE(event_kind(kind).has_value(), entry.name, ": ", kind);
}

}  // namespace
}  // namespace weft::model
