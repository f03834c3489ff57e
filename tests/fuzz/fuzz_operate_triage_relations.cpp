// LearnedRelations::read: no input crashes, and what is taken is written as it is read.
#include "base/config.hpp"
#include "fuzz.hpp"
#include "operate/triage/learned.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::operate::triage::LearnedRelations;
  static const auto rules = weft::operate::triage::default_rules();
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto relations = LearnedRelations::read(*config, rules);
  if (!relations) {
    WEFT_CHECK(!relations.error().what.empty());
    return 0;
  }
  for (const auto& r : relations->rows()) {
    WEFT_CHECK(r.from != r.to && r.support > 0 && r.confidence >= 0 && r.confidence <= 1);
    WEFT_CHECK(r.least_ns >= 0 && r.least_ns <= r.most_ns && r.most_ns <= relations->most_ns());
  }
  const auto text = weft::operate::triage::to_yaml(relations->rows(), "again");
  const auto again = weft::parse_yaml(text, "again.yaml");
  WEFT_CHECK(again.has_value());
  const auto known = LearnedRelations::read(*again, rules);
  WEFT_CHECK(known.has_value());
  WEFT_CHECK(known->rows().size() == relations->rows().size());
  return 0;
}
