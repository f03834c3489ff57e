#!/usr/bin/env bash
# Makes the Debian packages weft, weft-agent and weft-nccl of a finished build.
#   scripts/packages.sh [BUILD [OUT]]     build/release, build/packages
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath "${1:-$root/build/release}")
out=${2:-$root/build/packages}
mkdir -p "$out"
out=$(realpath "$out")
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: weft\n\nPackage: weft\nArchitecture: any\n' >"$work/debian/control" # dpkg-shlibdeps reads it

# package NAME DESCRIPTION DEPENDS BINARY : BINARY, under usr/, is what shared libraries are looked up for.
package() {
  local name=$1 stage=$work/$1 depends=$3 binary
  DESTDIR=$stage cmake --install "$build" --prefix /usr --component "$name" --strip >/dev/null
  mkdir -p "$stage/DEBIAN"
  if [ -d "$stage/usr/etc" ]; then
    mv "$stage/usr/etc" "$stage/etc"
    (cd "$stage" && find etc -type f -printf '/%p\n' | sort) >"$stage/DEBIAN/conffiles"
    install -m 755 "$root/packaging/postinst" "$stage/DEBIAN/postinst"
    sed "s/@PACKAGE@/$name/" "$root/packaging/prerm" >"$stage/DEBIAN/prerm"
    chmod 755 "$stage/DEBIAN/prerm"
  fi
  if [ -n "$4" ]; then
    binary=$(find "$stage/usr" -name "$4" -type f -not -path "*/share/*")
    depends=$(cd "$work" && dpkg-shlibdeps -O "$binary" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
    [ -n "$depends" ] || { echo "no package has the libraries of $4" >&2; exit 1; }
  fi
  printf '%s\n' "Package: $name" "Version: $version" "Architecture: $arch" "Section: net" "Priority: optional" \
    "Maintainer: weft <weft@localhost>" "Depends: $depends" "Description: $2" >"$stage/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$stage" "$out/${name}_${version}_$arch.deb"
}
package weft "design and operation of networks for AI clusters" "" weft
package weft-agent "weft agent as a unit of systemd" "weft (= $version)" ""
package weft-nccl "weft profiler plugin for NCCL" "" libweft-nccl.so
