// Whole stores as files: reading one at a moment, writing one, putting one in its place.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "port/store_image.hpp"

namespace weft::adapt::sqlite {

// Of the store at `path`, which a service may have open: it goes on writing, but the write-ahead
// log beside the store grows until the image is gone. Changes nothing.
// Fails: Errc::io, Errc::unknown (no store), Errc::unsupported (written by another version).
Result<std::unique_ptr<port::StoreImage>> open_sqlite_image(const std::string& path);

// Makes a new file, readable by its user and group, with everything in the image. It is not synced.
// Fails: Errc::io (also: the file exists, full disk), leaving no file.
// Cost: about 2 us a row.
Status write_sqlite_image(const std::string& path, port::StoreImage& image);

// Puts the store file `from`, which nobody has open, in the place of `path`, on the same file
// system. A store there that has been used is refused, or moved to the name that is returned ("":
// nothing had to be moved).
// Fails: Errc::io (also: a service has it open), Errc::infeasible (used), leaving both as they
// were.
Result<std::string> place_sqlite(const std::string& from, const std::string& path,
                                 port::IfUsed if_used);

}  // namespace weft::adapt::sqlite
