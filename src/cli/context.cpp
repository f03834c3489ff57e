#include "cli/context.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/file.hpp"
#include "cli/cli.hpp"

namespace weft::cli {

Result<std::unique_ptr<Context>> load_context(const Common& common, const std::string& fabric,
                                              const std::string& addresses) {
  WEFT_TRY(model::Fabric loaded, load_fabric(common, fabric));
  auto out = std::make_unique<Context>(std::move(loaded));
  if (!addresses.empty()) {
    WEFT_TRY(const std::string text, read_file(addresses));
    WEFT_TRY_STATUS(out->inventory.add_csv(text, addresses));
  }
  return out;
}

void print_records(const Context& context, const model::RecordSet& set) {
  for (const model::Record& row : set.rows) fmt::print("{}\n", to_json(context.fabric, set, row));
  std::fflush(stdout);
}

}  // namespace weft::cli
