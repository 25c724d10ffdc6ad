#!/usr/bin/env bash
# Installs a build into a new folder and uses it from there: the command with nothing of the sources in reach, the
# machines and experiments it ships, its manual page and completions, and the planner from a program outside.
# Usage: install_test.sh BUILD_FOLDER [deb]   (deb: by the Debian package instead of `cmake --install`)
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/usr
if [ "${2:-}" = deb ]; then
  (cd "$work" && cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/package" >/dev/null)
  package=$(ls "$work"/package/*.deb)
  dpkg-deb -f "$package" Package Version Depends
  dpkg-deb -f "$package" Depends | grep -q libsimgrid
  dpkg-deb -x "$package" "$work"
else
  cmake --install "$build" --prefix "$prefix" --strip >/dev/null
fi

# The installed tree names no folder of the sources or of the build.
if found=$(grep -rlF -e "$source/" -e "$build/" "$prefix"); then
  # A build that is not a release names its sources in its messages.
  grep -q 'CMAKE_BUILD_TYPE:.*=Release' "$build/CMakeCache.txt" && { echo "names the sources: $found"; exit 1; }
fi
for file in bin/hyperoffload share/man/man1/hyperoffload.1 share/bash-completion/completions/hyperoffload \
  share/zsh/vendor-completions/_hyperoffload share/hyperoffload/configs/experiments/quickstart.yaml \
  share/doc/hyperoffload/README.md share/doc/hyperoffload/docs/schemas/trace.schema.json; do
  find "$prefix/$file" -size +0 | grep -q . || { echo "$file is missing or empty"; exit 1; }
done

cd "$work"
"$prefix/bin/hyperoffload" --version
share=$prefix/share/hyperoffload
"$prefix/bin/hyperoffload" run "$share/configs/experiments/quickstart.yaml" -o out --set 'policies=[graph]' | grep -q 'graph *yes'

# A program that plans by itself, outside of the sources: the example of docs/embedding as installed.
cp -r "$prefix/share/doc/hyperoffload/docs/embedding" example
cmake -S example -B example/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug >/dev/null
cmake --build example/build >/dev/null
test "$(wc -l <example/plan_trace.cc)" -le 36
trace=$share/traces/chain-100.json machine=$share/configs/hardware/cloudmatrix384-die.yaml
planned=$(example/build/plan_trace "$trace" "$machine" 0.005)
echo "$planned"
# The library plans what the command plans.
actions=$("$prefix/bin/hyperoffload" plan "$trace" --hardware "$machine" --hbm 5MB --iterations 2 | grep -c '"kind"')
[ "${planned%% *}" = "$actions" ] && [ "$actions" -gt 0 ]
status=0
example/build/plan_trace "$trace" "$machine" 0.001 2>message || status=$?
[ $status = 3 ] && grep -q HBM message
echo "installed and used"
