// The status page: the open cases and what is done about them, for people with a browser.
#pragma once

#include <cstdint>
#include <string_view>

#include "port/store.hpp"
#include "serve/http.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// How a page keeps up to date: by a script of its own, or by being read again.
struct PageUpkeep {
  std::string_view script{};
  std::int64_t refresh_s = 0;  // 0: never
};
// A page around `main`, which is HTML, with nothing from elsewhere.
Reply plain_page(std::string_view title, std::string_view main, const PageUpkeep& upkeep);

// One HTML file without other files, which reads itself anew when events come.
// Fails: Errc::io.
Result<Reply> status_page(port::Store& store, const Health& health);
// The console: one HTML file that reads the API. Where it could not be built, the status page.
Result<Reply> console_page(port::Store& store, const Health& health);

}  // namespace weft::serve
