# shellcheck shell=bash disable=SC2034
# What run.sh and test.sh share: packages, configure, build. To be sourced from the top of the tree.

# The one list of Debian 12 packages. `build` makes and runs weft, `test` adds what checks it.
weft_packages_build=(
  g++ cmake ninja-build ccache git ca-certificates
  libfmt-dev nlohmann-json3-dev libyaml-cpp-dev zlib1g-dev libcli11-dev libpugixml-dev pkg-config
  libnl-3-dev libnl-route-3-dev libnftables-dev
  libsqlite3-dev libpq-dev libssl-dev libboost1.81-dev libcpp-httplib-dev libre2-dev libsnmp-dev
  libgrpc++-dev libgrpc-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libnats-dev libsimdjson-dev libxxhash-dev doctest-dev
)
weft_packages_python=(pybind11-dev python3-dev python3-pandas python3-wheel) # for the module and its wheel
weft_packages_test=(
  clang-19 clang-tidy-19 clang-format-19 lld-19 libclang-rt-19-dev llvm-19 libbenchmark-dev chromium
  frr frr-snmp openssh-server nats-server snmpd snmp iproute2 iputils-ping fping postgresql prometheus prometheus-alertmanager scotch slurmctld slurmd lldpd
  slurm-client infiniband-diags ibsim-utils coinor-cbc coinor-clp dpkg-dev systemd
  "${weft_packages_python[@]}" zsh fish groff-base python3-matplotlib python3-nbclient python3-ipykernel python3-pip
)

say() { printf '\n== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    die "not root and no sudo; ask an administrator to run: $*"
  fi
}

# install_packages NAME... : those that are missing, by apt. Nothing missing, nothing done.
install_packages() {
  local name missing=()
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  # Node may come from elsewhere, with npm; Debian's packages would clash with that.
  command -v node >/dev/null 2>&1 || missing+=(nodejs)
  command -v npm >/dev/null 2>&1 || missing+=(npm)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 ||
    die "no apt-get here; install what corresponds to: ${missing[*]}"
  say "Installing ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q
    --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "${missing[@]}")
  # A list of packages that is missing or old is the usual reason to fail: fetch it and try again.
  # This daemon would begin to send on every interface of the machine as soon as it is installed.
  case " ${missing[*]} " in *" lldpd "*) ! command -v systemctl >/dev/null 2>&1 || as_root systemctl mask lldpd.service ;; esac
  as_root apt-get update -q || die "apt-get update failed; check the network and /etc/apt"
  as_root "${install[@]}" || as_root "${install[@]}" || die "apt-get could not install ${missing[*]}"
}

# What ccache must overlook to know precompiled headers again.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# build PRESET [CMAKE OPTION...] : configures and builds build/PRESET.
build() {
  local preset=$1
  shift
  say "Building build/$preset"
  # A directory that was configured elsewhere or half cannot be used again.
  local cache=build/$preset/CMakeCache.txt
  if [ -e "$cache" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
    rm -rf "build/$preset"
  fi
  # A report page that npm could not build is tried again.
  local assets=build/$preset/src/plan/report/assets.cpp
  [ ! -e "$assets.missing" ] || rm -f "$assets"
  cmake --preset "$preset" "$@" >/dev/null || die "cmake could not configure build/$preset"
  cmake --build "build/$preset" --parallel "$(nproc)" || die "build/$preset does not build"
}
