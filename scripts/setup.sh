#!/usr/bin/env bash
# Installs what the build needs and is not there yet: packages with apt, and with npm the chart library of the report
# page. Debian 12 or later, as root; safe to repeat.
# Usage: scripts/setup.sh [--tests]    --tests: what only the tests need, too
set -euo pipefail

packages=(g++ cmake ninja-build libsimgrid-dev libboost-dev libyaml-cpp-dev nlohmann-json3-dev catch2 libcli11-dev
  libfmt-dev libxxhash-dev zlib1g-dev libprotobuf-dev coinor-libclp-dev python3-jsonschema dpkg-dev file)
command -v npm >/dev/null || packages+=(nodejs npm)
if [ "${1:-}" = --tests ]; then packages+=(chromium-headless-shell python3-matplotlib); fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}" >&2
  if [ "$(id -u)" -ne 0 ]; then
    echo "setup.sh: these packages are missing and only root can install them: ${missing[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2
  apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
fi

# The page and its tests: a few packages at the versions of package-lock.json. All else works without them.
web=$(dirname "$0")/../app/report
if [ "$web/package-lock.json" -nt "$web/node_modules/.package-lock.json" ]; then
  echo "installing: the npm packages of app/report" >&2
  if npm ci --prefix "$web" --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
    touch "$web/node_modules/.package-lock.json"
  else
    echo "setup.sh: npm can't install the chart library: \`hyperoffload report\` and the tests of pages will be missing" >&2
  fi
fi
