// Script and style of the page, built from web/report and generated as source at build time.
#pragma once

#include <string_view>

namespace weft::plan::report {

extern const std::string_view page_script, page_style;
// "sha256-..." of their bytes, for the content-security policy.
extern const std::string_view page_script_hash, page_style_hash;

}  // namespace weft::plan::report
