// Lists of targets as CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapt/gnmi/subscriber.hpp"
#include "base/result.hpp"

namespace weft::adapt::gnmi {

// Columns device and address ("host:port"); optional security ("tls", which it is, or "plain"), ca,
// certificate, key (PEM files), server_name, username, password_file, database. Files are read
// here; a password is the first line of its file. Fails: Errc::parse, Errc::value, Errc::io, each
// with its position.
Result<std::vector<Target>> read_targets(std::string_view text, const std::string& file);

}  // namespace weft::adapt::gnmi
