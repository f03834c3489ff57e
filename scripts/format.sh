#!/usr/bin/env bash
# Formats every C++ file of the tree in place.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find src tests bench -name '*.[ch]pp' -print0 | xargs -0 clang-format-19 -i
