// The status page: the open cases and what is done about them, for people with a browser.
#pragma once

#include <string>

#include "port/store.hpp"
#include "serve/http.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// One HTML file without other files, which reads itself anew when events come.
// Fails: Errc::io.
Result<Reply> status_page(port::Store& store, const Health& health);
// The console: one HTML file that reads the API. Where it could not be built, the status page.
Result<Reply> console_page(port::Store& store, const Health& health);

}  // namespace weft::serve
