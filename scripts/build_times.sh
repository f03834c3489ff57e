#!/usr/bin/env bash
# build_times.sh [build/release]: objects and seconds by room, of the last time each was built, so that growth is seen.
# The seconds are elapsed ones of each compiler, which are CPU seconds where the machine was free and
# no compiler cache answered (CCACHE_DISABLE=1).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=${1:-build/release}/.ninja_log
[ -e "$log" ] || {
  echo "build_times.sh: no $log; build first, or name a build directory" >&2
  exit 1
}
awk -F '\t' '
  /^#/ { next }
  { seconds[$4] = ($2 - $1) / 1000 } # the last line of an output is its last build
  END {
    for (output in seconds) {
      if (output !~ /\.(o|gch|pch)$/) continue
      room = output
      sub(/\/CMakeFiles\/.*/, "", room)
      sub(/^CMakeFiles\/.*/, "precompiled headers", room)
      kind = output ~ /_test\.dir\// || room ~ /^(tests|bench)/ ? "test" : "made"
      objects[room, kind]++; time[room, kind] += seconds[output]; rooms[room] = 1
      objects["total", kind]++; time["total", kind] += seconds[output]
    }
    row = "%-28s %8s %9s %8s %9s\n"
    printf row, "room", "objects", "seconds", "tests", "seconds"
    count = 0
    for (room in rooms) names[++count] = room
    for (i = 1; i <= count; i++) # by cost
      for (j = i + 1; j <= count; j++)
        if (cost(names[j]) > cost(names[i])) { swap = names[i]; names[i] = names[j]; names[j] = swap }
    names[++count] = "total"
    for (i = 1; i <= count; i++)
      printf row, names[i], objects[names[i], "made"] + 0, sprintf("%.1f", time[names[i], "made"]), objects[names[i], "test"] + 0, sprintf("%.1f", time[names[i], "test"])
  }
  function cost(room) { return time[room, "made"] + time[room, "test"] }
' "$log"
