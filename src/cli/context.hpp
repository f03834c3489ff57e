// The fabric and the names of its parts, for commands that hear of devices.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/inventory.hpp"

namespace weft::cli {

struct Common;

// Readers borrow it: it stays where it is.
struct Context {
  model::Fabric fabric;
  observe::telemetry::Inventory inventory;
  explicit Context(model::Fabric its) : fabric(std::move(its)), inventory(fabric) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

// `addresses`: CSV of names that the fabric does not have; "": none.
Result<std::unique_ptr<Context>> load_context(const Common& common, const std::string& fabric,
                                              const std::string& addresses);

// Records as JSON lines on standard output.
void print_records(const Context& context, const model::RecordSet& set);

}  // namespace weft::cli
