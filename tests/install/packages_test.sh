#!/usr/bin/env bash
# Builds the packages of a build, unpacks them into an empty root, and checks what lies there.
#   packages_test.sh TREE BUILD
set -euo pipefail
tree=$1 build=$2
for tool in dpkg-deb dpkg-shlibdeps systemd-analyze; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: packages: no $tool"; exit 77; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$tree/scripts/packages.sh" "$build" "$out"
for name in weft weft-agent weft-nccl; do
  deb=$(echo "$out/${name}"_[0-9]*.deb)
  dpkg-deb --extract "$deb" "$out/root"
  dpkg-deb --control "$deb" "$out/control.$name"
  [ -f "$out/root/usr/share/doc/$name/copyright" ] || fail "$name has no copyright"
  if dpkg-deb --contents "$deb" | grep -v ' root/root '; then fail "$name has files that are not root's"; fi
done
conffiles=$(cat "$out"/control.*/conffiles | LC_ALL=C sort | tr '\n' ' ')
[ "$conffiles" = "/etc/weft/agent.env /etc/weft/serve.env /etc/weft/serve.yaml " ] || fail "conffiles: $conffiles"
grep -q '^Depends: .*libc6 (>= ' "$out/control.weft/control" || fail "weft depends on no libc6"
grep -q '^Depends: libc6 ([^,]*)$' "$out/control.weft-nccl/control" || fail "weft-nccl needs more than libc6"
version=$(dpkg-deb --field "$out"/weft_*.deb Version)
grep -qF "Depends: weft (= $version)" "$out/control.weft-agent/control" || fail "weft-agent takes any weft"
[ -n "$(find "$out/root/usr/lib" -name libweft-nccl.so)" ] || fail "no plugin"
"$out/root/usr/bin/weft" --version | grep -qF "$version" || fail "the installed weft is another version"
for script in "$out"/control.*/{postinst,prerm}; do
  [ ! -e "$script" ] || sh -n "$script"
done

# Options of the units are options of the commands.
for verb in serve agent; do
  unit=$out/root/usr/lib/systemd/system/weft.service
  [ "$verb" = serve ] || unit=$out/root/usr/lib/systemd/system/weft-agent.service
  help=$("$out/root/usr/bin/weft" "$verb" --help)
  for option in $(sed -n '/^ExecStart=/,/[^\\]$/p' "$unit" | grep -o -- '--[a-z-]*'); do
    grep -q -- "$option\b" <<<"$help" || fail "weft $verb has no $option"
  done
  sed "s|^ExecStart=weft|ExecStart=$out/root/usr/bin/weft|" "$unit" >"$out/$(basename "$unit")"
  said=$(systemd-analyze verify --man=no "$out/$(basename "$unit")" 2>&1) || fail "$said"
  if grep "weft[a-z-]*\.service" <<<"$said"; then fail "$unit"; fi
  systemd-analyze security --offline=true --threshold=20 "$out/$(basename "$unit")" >/dev/null ||
    fail "$unit is more exposed than 2.0"
done

# The unit's own command line, with the sample configuration, is one that the service takes.
echo "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}" >"$out/fabric.yaml"
command=$(sed -n '/^ExecStart=/,/[^\\]$/p' "$out/root/usr/lib/systemd/system/weft.service" | sed 's/^ExecStart=weft//' | tr -d '\\\n')
command=${command//\$\{WEFT_STORE\}/$out/weft.db}
command=${command//\$\{WEFT_LISTEN\}/unix:$out/api}
command=${command//\$WEFT_SERVE_OPTIONS/}
command=${command//\/etc\/weft\/fabric.yaml/$out/fabric.yaml}
# Words are split as systemd does.
"$out/root/usr/bin/weft" ${command//\/etc\/weft\//$out/root/etc/weft/} 2>"$out/log" &
service=$!
for _ in $(seq 300); do
  [ ! -S "$out/api" ] && kill -0 "$service" 2>/dev/null || break
  sleep 0.1
done
kill "$service" 2>/dev/null || true # it may have ended, which wait tells
wait "$service" || fail "weft$command: $(cat "$out/log")"
grep -q "ready, 0 cases open" "$out/log" || fail "weft$command: $(cat "$out/log")"
