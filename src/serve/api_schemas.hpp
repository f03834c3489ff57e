// JSON Schemas of what the service says: the components of its OpenAPI document, and what commands
// print that show the same.
#pragma once

#include <string>

namespace weft::serve {

// A JSON object, schemas by name; they refer to each other as "#/components/schemas/NAME".
std::string api_schemas();

}  // namespace weft::serve
