#!/usr/bin/env bash
# Makes the Python wheel: the module, and the program for the commands that it starts.
#   scripts/wheel.sh [BUILD [OUT]]     BUILD is a finished build with WEFT_PYTHON; without it one is made in
#                                      build/release. OUT: build/wheel
# It is for this version of Python and this distribution: libraries such as libfmt are those of the system.
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -eq 0 ]; then
  cd "$root"
  # shellcheck source=scripts/setup.sh
  source scripts/setup.sh
  install_packages "${weft_packages_build[@]}" "${weft_packages_python[@]}"
  build release -DWEFT_PYTHON=ON
fi
build=$(realpath "${1:-$root/build/release}")
out=${2:-$root/build/wheel}
mkdir -p "$out"
out=$(realpath "$out")
python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
tag=$("$python" -c 'import sys, sysconfig
python = "cp%d%d" % sys.version_info[:2]
print(python, python, sysconfig.get_platform().replace("-", "_").replace(".", "_"), sep="-")')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -RL "$build/python/weft" "$work/weft"
rm -rf "$work/weft/__pycache__"
strip "$work/weft/bin/weft" "$work"/weft/_weft*.so
info=$work/weft-$version.dist-info
mkdir "$info"
cp "$root/LICENSE" "$info"
printf '%s\n' 'Metadata-Version: 2.1' 'Name: weft' "Version: $version" \
  'Summary: design and operation of networks for AI clusters' 'Requires-Python: >=3.9' \
  'Provides-Extra: frames' 'Requires-Dist: pandas; extra == "frames"' >"$info/METADATA"
printf '%s\n' 'Wheel-Version: 1.0' 'Generator: weft' 'Root-Is-Purelib: false' "Tag: $tag" >"$info/WHEEL"
"$python" -m wheel pack --dest-dir "$out" "$work"
