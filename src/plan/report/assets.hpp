// Scripts and styles of the report page and of the service's console, built from web/report and
// generated as source at build time.
#pragma once

#include <string_view>

namespace weft::plan::report {

// Empty where npm could not fetch what builds them: the report is then tables alone, and the
// console a table of cases.
struct PageAssets {
  std::string_view script, style;
  // "sha256-..." of their bytes, for the content-security policy.
  std::string_view script_hash, style_hash;
};

extern const PageAssets page_assets, console_assets;

}  // namespace weft::plan::report
