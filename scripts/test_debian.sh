#!/usr/bin/env bash
# Builds and tests in fresh chroots of Debian 12 (SimGrid 3.32, Catch2 2) and 13 (SimGrid 4.0, Catch2 3), made with
# debootstrap. As root; what is already there is used again.
# Usage: scripts/test_debian.sh [bookworm|trixie]... [-- options of ctest]
#   DEBIAN_CHROOTS  where the chroots are (default /var/tmp/hyperoffload-chroots)
#   DEBIAN_MIRROR   default debootstrap's
set -euo pipefail
cd "$(dirname "$0")/.."
chroots=${DEBIAN_CHROOTS:-/var/tmp/hyperoffload-chroots}
suites=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do suites+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
if [ "$(id -u)" -ne 0 ]; then
  echo "test_debian.sh: chroots need root" >&2
  exit 1
fi
command -v debootstrap >/dev/null || { apt-get update -q && apt-get install -o DPkg::Lock::Timeout=300 -y -q --no-install-recommends debootstrap; } >&2
mkdir -p "$chroots"

for suite in "${suites[@]}"; do
  root=$chroots/$suite
  if [ ! -e "$root/etc/debian_version" ]; then
    echo "== $suite: debootstrap" >&2
    rm -rf "$root.new"
    debootstrap --variant=minbase "$suite" "$root.new" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >&2
    mv "$root.new" "$root"
  fi
  [ -e /etc/resolv.conf ] && cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  # The tree is copied, the build stays there: what is up to date is not built again.
  mkdir -p "$root/src/hyperoffload"
  find "$root/src/hyperoffload" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
  tar -c --exclude=./.git --exclude='./build*' --exclude=./out . | tar -x -C "$root/src/hyperoffload" --no-same-owner
  echo "== $suite: $(cat "$root/etc/debian_version")" >&2
  mounted=()
  for dir in proc dev; do
    if ! mountpoint -q "$root/$dir" && mount --rbind "/$dir" "$root/$dir" 2>/dev/null; then mounted+=("$root/$dir"); fi
  done
  status=0
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    bash -euo pipefail -c 'cd /src/hyperoffload && scripts/test.sh "$@"' test "$@" || status=$?
  for dir in "${mounted[@]}"; do umount -l "$dir"; done
  if [ $status -ne 0 ]; then
    echo "test_debian.sh: $suite failed" >&2
    exit $status
  fi
  version=$(chroot "$root" dpkg-query -W -f='${Version}' libsimgrid-dev)
  echo "$suite (Debian $(cat "$root/etc/debian_version"), SimGrid $version): built and tested"
done
