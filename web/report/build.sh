#!/bin/sh
# build.sh DIRECTORY OUT.cpp: builds the report page in DIRECTORY and embeds it into OUT.cpp.
# From the environment: NPM and NODE (programs; empty or ending in NOTFOUND where missing) and
# PAGE_REQUIRED=1 to fail where the page cannot be built; otherwise OUT.cpp then holds empty assets, and
# OUT.cpp.missing tells scripts/setup.sh to try again next time.
set -eu
directory=$1 out=$2
web=$(cd "$(dirname "$0")" && pwd)

run_tool() { # PROGRAM ARGUMENT... : not found is a failure
  case $1 in '' | *NOTFOUND) return 1 ;; esac
  "$@"
}

install_packages() {
  # What was installed for the same list of packages serves again.
  cmp -s "$web/package-lock.json" "$directory/installed.json" && return 0
  cp "$web/package.json" "$web/package-lock.json" "$web/.npmrc" "$directory" || return 1
  run_tool "$NPM" --prefix "$directory" ci --loglevel=error --fetch-retries=1 --fetch-timeout=20000 || return 1
  cp "$web/package-lock.json" "$directory/installed.json"
}

build_page() {
  mkdir -p "$directory" && install_packages || return 1
  rm -rf "$directory/src" && cp -R "$web/src" "$web/package.json" "$web/tsconfig.json" "$web/vite.config.js" "$directory" || return 1
  (cd "$directory" && run_tool "$NPM" run --silent build -- --logLevel error) || return 1
  run_tool "$NODE" "$web/embed.mjs" "$directory/dist" "$directory/node_modules/uplot/LICENSE" "$out"
}

rm -f "$out.missing"
build_page && exit 0
if [ "${PAGE_REQUIRED:-0}" = 1 ]; then
  echo "build.sh: npm could not build the report page (see above)" >&2
  exit 1
fi
cat >&2 <<'END'
warning: npm could not build the interactive report page (see above). weft works without it: report.html holds
         the tables alone, and the service's page is a table of cases. Install Node.js 18 or later with npm, let npm reach its registry, and build again.
END
cat >"$out" <<'END'
// Made by web/report/build.sh where npm could not build the page.
#include "plan/report/assets.hpp"

namespace weft::plan::report {

const PageAssets page_assets{}, console_assets{};

}  // namespace weft::plan::report
END
touch "$out.missing"
