// Cases as JSON lines and as tables for people.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.hpp"
#include "model/events/case.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::operate::triage {

using model::Case;

// The id of a record from its serial.
using IdOf = std::function<std::string_view(std::uint64_t)>;

// One line, without its end: {"id", "state", "cause": {"kind", "entity"}, "confidence", "opened",
// "closed", "members": [{"record", "relation"}], "suppressed", "silent", "unexplained": []}, and
// "maintenance" where a window covers it.
std::string to_json(const model::Fabric& fabric, const Case& c, const IdOf& id_of);
// The same, for others to add to.
JsonObject json_object(const model::Fabric& fabric, const Case& c, const IdOf& id_of);
// {"kind", "entity"}
JsonObject cause_object(const model::Fabric& fabric, const Case& c);

// One row a case: root, type, members by relation, what it does not explain.
std::string to_table(const model::Fabric& fabric, const std::vector<Case>& cases);

}  // namespace weft::operate::triage
