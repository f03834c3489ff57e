#!/usr/bin/env bash
# Installs the packages by apt into a fresh Debian, upgrades, downgrades, removes and purges them.
#   apt_test.sh TREE BUILD
set -euo pipefail
tree=$1 build=$2
skip() { echo "SKIPPED: apt: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
for tool in dpkg-deb dpkg-shlibdeps mmdebstrap unshare; do
  command -v "$tool" >/dev/null || skip "no $tool"
done
[ "$(id -u)" = 0 ] || skip "needs root"
. /etc/os-release
[ "$ID" = debian ] || skip "this machine is not Debian, whose libraries the packages need"
out=$(mktemp -d)
trap 'rm -rf --one-file-system "$out"' EXIT

# The same files as a higher version, whose samples have changed.
"$tree/scripts/packages.sh" "$build" "$out/old" >/dev/null
old=$(dpkg-deb --field "$out"/old/weft_*.deb Version) new=99.0
mkdir "$out/new"
for name in weft weft-agent; do
  dpkg-deb --raw-extract "$out/old/${name}"_[0-9]*.deb "$out/tree.$name"
  sed -i "s/^Version: .*/Version: $new/; s/(= $old)/(= $new)/" "$out/tree.$name/DEBIAN/control"
  for sample in "$out/tree.$name"/etc/weft/*; do echo "# of version $new" >>"$sample"; done
  dpkg-deb --root-owner-group --build "$out/tree.$name" "$out/new" >/dev/null
done

root=$out/root
mmdebstrap --quiet --mode=root --variant=apt --include=systemd-standalone-sysusers \
  "$VERSION_CODENAME" "$root" >"$out/log" 2>&1 || { tail -3 "$out/log"; skip "no packages of Debian can be had"; }
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp -r "$out/old" "$out/new" "$root/srv"
cat >"$root/srv/zone.yaml" <<'END'
fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}
END
# Every change of files of ours is lost with the mount namespace; /proc is for systemd-sysusers.
inside() {
  unshare --mount bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"' "$root" "$@"
}
apt() {
  inside apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >"$out/log" 2>&1 || { cat "$out/log" >&2; fail "apt-get $*"; }
}
is_version() {
  [ "$(inside dpkg-query -W -f '${Version}' weft)" = "$1" ] || fail "weft is not $1"
  inside weft --version >/dev/null || fail "weft of $1 does not run"
}
# A service that takes a line and keeps it; the store of before stays as it is.
serve_once() {
  inside setpriv --reuid weft --regid weft --clear-groups bash -c '
    weft serve --fabric /srv/zone.yaml --config /etc/weft/serve.yaml --store /var/lib/weft/weft.db --listen unix:/tmp/api 2>/tmp/log &
    service=$!
    for _ in $(seq 100); do [ ! -S /tmp/api ] && kill -0 $service 2>/dev/null || break; sleep 0.1; done
    echo "{\"id\":\"$0\",\"t\":\"2026-01-01T00:00:00Z\",\"source\":\"syslog\",\"entity\":\"rtsw:0->ctsw:1\",\"kind\":\"link_up\"}" |
      weft send --to unix:/tmp/api || { cat /tmp/log; exit 1; }
    kill $service; wait $service; rm -f /tmp/api' "$1" || fail "weft serve of $1"
}
events() { inside weft store info --store /var/lib/weft/weft.db --json | sed 's/.*"events":\([0-9]*\).*/\1/'; }

apt update
apt install "/srv/old/weft_${old}_$(dpkg --print-architecture).deb" "/srv/old/weft-agent_${old}_$(dpkg --print-architecture).deb"
is_version "$old"
inside id weft >/dev/null || fail "no user weft"
mkdir -p "$root/var/lib/weft" && inside chown weft: /var/lib/weft # as StateDirectory= does
serve_once "$old"
[ "$(events)" = 1 ] || fail "the store has $(events) events"

# A file that was changed stays, one that was not is replaced.
echo "WEFT_LISTEN=127.0.0.1:8630" >>"$root/etc/weft/serve.env"
apt -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install \
  "/srv/new/weft_${new}_$(dpkg --print-architecture).deb" "/srv/new/weft-agent_${new}_$(dpkg --print-architecture).deb"
is_version "$new"
grep -q '^WEFT_LISTEN=127' "$root/etc/weft/serve.env" || fail "a changed file was replaced"
grep -q "of version $new" "$root/etc/weft/serve.yaml" || fail "an unchanged file was not replaced"
serve_once "$new"
[ "$(events)" = 2 ] || fail "after the upgrade the store has $(events) events"

apt --allow-downgrades -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install \
  "/srv/old/weft_${old}_$(dpkg --print-architecture).deb" "/srv/old/weft-agent_${old}_$(dpkg --print-architecture).deb"
is_version "$old"
serve_once again
[ "$(events)" = 3 ] || fail "after the downgrade the store has $(events) events"

apt remove weft weft-agent
[ ! -e "$root/usr/bin/weft" ] || fail "weft stayed after it was removed"
[ -e "$root/etc/weft/serve.env" ] || fail "removing took the configuration"
apt purge weft weft-agent
[ ! -e "$root/etc/weft/serve.env" ] || fail "purging left the configuration"
[ -e "$root/var/lib/weft/weft.db" ] || fail "purging took the store"
echo "installed $old, upgraded to $new, back, removed and purged"
