// What does not change while records flow.
#pragma once

#include <utility>

#include "model/fabric/fabric.hpp"
#include "operate/triage/learned.hpp"
#include "operate/triage/maintenance.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

// Several runs may share one.
struct Context {
  Context(const model::Fabric& fabric, const Rules& chosen, LearnedRelations relations = {})
      : rules(chosen), parts(fabric, rules.cards), suspects(parts), learned(std::move(relations)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Rules rules;
  Parts parts;
  Suspects suspects;
  Maintenance maintenance;
  LearnedRelations learned;  // none: the rules alone
};

}  // namespace weft::operate::triage
