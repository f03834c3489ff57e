// Cables out of NetBox, by its REST API.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/result.hpp"
#include "model/formats/seen_cables.hpp"

namespace weft::adapt::live {

struct NetBoxQuery {
  std::string prefix;  // of the path, before "/api": "" or "/netbox"
  std::string token;
  std::string filter;  // of /api/dcim/cables/, as "site=ams1&status=connected"; "": all cables
  std::chrono::milliseconds timeout{60'000};  // of a page
};

struct NetBoxCables {
  std::vector<model::SeenCable> cables;  // as each_once() has them
  std::size_t pages = 0;
  std::size_t not_connected = 0;    // planned, or being removed
  std::size_t others = 0;           // with an end that is no interface of a device: power, circuits
  std::vector<std::string> panels;  // cables that end at patch panels, as "cable 17", at most 100
};

// Reads page by page, 1,000 cables each, as NetBox limits them. Both shapes are read: lists of
// terminations (3.3 and newer) and single ones. A cable with several interfaces at an end is as
// many cables where both ends have the same number. Fails: as get_text; Errc::parse for an answer
// that is not of that API; Errc::value beyond 1,000,000 cables.
// From: NetBox, docs/integrations/rest-api.md and netbox/dcim/api/serializers_/cables.py.
Result<NetBoxCables> read_netbox_cables(HttpClient& client, const NetBoxQuery& query);

// Adds the cables of one page; where the next one is, from "/api" on, or "". Fails: as above.
Result<std::string> take_netbox_page(std::string_view text, const Where& where, NetBoxCables& out);

}  // namespace weft::adapt::live
