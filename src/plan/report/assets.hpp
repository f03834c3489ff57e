// Script and style of the page, built from web/report and generated as source at build time.
#pragma once

#include <string_view>

namespace weft::plan::report {

// Empty where npm could not fetch what builds the page: the report is then tables alone.
struct PageAssets {
  std::string_view script, style;
  // "sha256-..." of their bytes, for the content-security policy.
  std::string_view script_hash, style_hash;
};

extern const PageAssets page_assets;

}  // namespace weft::plan::report
