// Whole stores in a database: reading one at a moment, and filling one.
#pragma once

#include <memory>
#include <string>

#include "adapt/postgres/store.hpp"
#include "base/result.hpp"
#include "port/store_image.hpp"

namespace weft::adapt::postgres {

// Of the store that `conninfo` names, in one read-only transaction (REPEATABLE READ), beside
// whoever writes to it. Changes nothing.
// Fails: as open_postgres(), Errc::unknown (no store), Errc::unsupported (another version).
Result<std::unique_ptr<port::StoreImage>> open_postgres_image(const std::string& conninfo,
                                                              Patience patience = {});

// Puts everything in the image into the store that `conninfo` names, in one transaction; makes the
// tables where there are none. With IfUsed::replace what is there is deleted first, the audit log
// included. A service that lost its connection meanwhile is superseded.
// Fails: Errc::io (also: a service writes to it), Errc::infeasible (used); nothing has changed
// then.
Status write_postgres_image(const std::string& conninfo, port::StoreImage& image,
                            port::IfUsed if_used, Patience patience = {});

}  // namespace weft::adapt::postgres
