#!/usr/bin/env bash
# Installs the Debian packages that are missing, naming them first. Never fails on what is already there.
# With --tests, what only tests need, too; with --machine, what `make test-vm` needs to emulate a machine.
# Without root, without apt or off Linux it installs nothing and says what real nodes would need.
set -euo pipefail

# command or file that must exist → package that brings it
needs=(
  containerd:containerd runc:runc /usr/lib/cni/bridge:containernetworking-plugins
  nft:nftables iptables:iptables conntrack:conntrack ip:iproute2 nsenter:util-linux unshare:util-linux
  /bin/busybox:busybox-static kubectl:kubernetes-client
)
[ "${1:-}" != --tests ] || needs+=(/usr/lib/python3/dist-packages/kubernetes:python3-kubernetes openssl:openssl etcd:etcd-server etcdctl:etcd-client chromium:chromium prometheus:prometheus)
[ "${1:-}" != --machine ] || needs+=(debootstrap:debootstrap qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mkfs.ext4:e2fsprogs)
[ "$(uname -s)" = Linux ] || { echo "packages: not Linux, so nodes will be simulated; nothing to install"; exit 0; }
missing=()
for need in "${needs[@]}"; do
  thing=${need%%:*} package=${need##*:}
  case $thing in
    /*) [ -e "$thing" ] || missing+=("$package") ;;
    *) command -v "$thing" >/dev/null 2>&1 || [ -x "/usr/sbin/$thing" ] || missing+=("$package") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "packages: missing ${missing[*]} (needed for real containers and for the e2e tests; install them as root, or go on with simulated nodes)"
  exit 0
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=60 "${missing[@]}" >>"$log" 2>&1; }
# The package lists may be there and fresh, or not: update them only when that is what is wrong.
install || { apt-get update >>"$log" 2>&1 && install; } || {
  tail -n 20 "$log"
  echo "packages: apt-get could not install ${missing[*]}"
  exit 6
}
