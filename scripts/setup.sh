#!/usr/bin/env bash
# Installs with apt what the build needs and is not there yet. Debian 12 or later, as root; safe to repeat.
set -euo pipefail

packages=(g++ cmake ninja-build libsimgrid-dev libboost-dev libyaml-cpp-dev nlohmann-json3-dev catch2 libcli11-dev
  libfmt-dev zlib1g-dev libprotobuf-dev python3-jsonschema dpkg-dev file)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
if [ "$(id -u)" -ne 0 ]; then
  echo "setup.sh: these packages are missing and only root can install them: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
