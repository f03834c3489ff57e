// JSON Schemas of what commands print with --json: the files of schemas/.
#pragma once

#include <string>

#include "cli/embedded.hpp"

namespace weft::cli {

// A file's schema, complete. {"$ref": "run.json"}, a whole file or with "#/oneOf/1" behind it a
// part of one, and "#/components/schemas/NAME", of the service's API, become what they refer to;
// keys beside it stay. Objects of the API have no other members than those: what this build prints.
std::string command_schema(const Embedded& file);

}  // namespace weft::cli
