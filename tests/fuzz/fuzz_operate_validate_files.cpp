// The readers of weft validate: no input crashes, errors name the file, paths lead from the source
// to the destination, and what was read can be judged and written.
#include <string>

#include "fuzz.hpp"
#include "model/formats/build_fabric.hpp"
#include "operate/validate/judge.hpp"
#include "operate/validate/superbench.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::operate::validate;
  static const model::Fabric fabric = [] {
    const auto section =
        parse_yaml("{generator: ai_zone, racks: 2, gpus_per_host: 2, spines: 2}", "f");
    return *model::build_fabric(*section);
  }();
  const std::string_view text = fuzz::text_of(data, size);
  const auto gbps = read_measured(text, "m.txt");
  WEFT_CHECK(gbps ? *gbps >= 0 : gbps.error().where.file == "m.txt");
  const auto measured = read_measured_csv(text, "m.csv");
  if (!measured) WEFT_CHECK(measured.error().where.file == "m.csv");
  static const Rounds planned = [] {
    RoundOptions options;
    options.is_idle.assign(fabric.hosts().size(), true);
    return *plan_rounds(fabric, options);
  }();
  const auto bench = read_superbench(fabric, planned, text, "s.jsonl");
  if (!bench) WEFT_CHECK(bench.error().where.file == "s.jsonl");
  const auto rounds = read_csv(fabric, text, "p.csv");
  if (!rounds) {
    WEFT_CHECK(rounds.error().where.file == "p.csv");
    return 0;
  }
  Measured all;
  for (std::uint32_t f = 0; f < rounds->flows.size(); ++f) {
    const auto path = rounds->path(rounds->flows[f]);
    WEFT_CHECK(fabric.from(path.front()) == rounds->flows[f].src);
    WEFT_CHECK(fabric.to(path.back()) == rounds->flows[f].dst);
    all[f] = f % 3;
  }
  if (check_results(fabric, *rounds, all, "m.csv")) judge(fabric, *rounds, all);
  WEFT_CHECK(read_csv(fabric, to_csv(fabric, *rounds), "again.csv").has_value());
  return 0;
}
