#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the project in a bare system of another Debian, with its compiler, Abseil and protobuf, runs
# tests there, and installs and uses the package:
#
#   debootstrap --variant=minbase trixie ROOT
#   sudo bash tests/package/build_in_root.sh ROOT [TESTS]
#
# TESTS is a regular expression, of the tests in C++ that are built and run. By default it has those
# whose sources meet Abseil and protobuf most: `.` has all of them, and takes twice the time. JOBS
# says how many compilers run at once. What is built stays in ROOT/build, so that a second run goes
# on where the first one ended. Needs the network, for apt-get and pip.
set -euo pipefail
root=$1 tests=${2:-'^(sharding|ir|custom_call|import|api)_'}
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$root/proc" "$root/source"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
# A file that has not changed keeps its time, and is not compiled again.
git -C "$source" ls-files | while read -r file; do
  cmp -s "$source/$file" "$root/source/$file" || install -D -p "$source/$file" "$root/source/$file"
done
cat > "$root/source/build_here.sh" <<'SH'
cd /source
tests=$1 SHARDCALL_BUILD=/build
source cmake/setup.sh
SHARDCALL_PACKAGES+=" python3-venv python3-dev dpkg-dev pkg-config"
install_packages
[ -x /python/bin/python3 ] || python3 -m venv /python
export VIRTUAL_ENV=/python PATH=/python/bin:$PATH
python3 -m pip install -q --upgrade nanobind jax ml_dtypes
# The Python of the system has the headers, and that of the environment the packages.
SHARDCALL_CMAKE_OPTIONS=(-DSHARDCALL_BUILD_TESTS=ON -DSHARDCALL_BUILD_BENCHMARKS=OFF)
echo "== $(. /etc/os-release; echo "$PRETTY_NAME"), g++ $(g++ -dumpfullversion)," \
  "Abseil $(dpkg-query -W -f='${Version}' libabsl-dev)," \
  "protobuf $(dpkg-query -W -f='${Version}' libprotobuf-dev)"
build_shardcall -j "$JOBS" shardcall shardcall_installed shardcall_python_core
chosen=$(ninja -C /build -t targets all | sed -n 's/^\([a-z0-9_]*_test\): phony$/\1/p' |
  grep -v ^cmake_ | grep -E "$tests")
ninja -C /build -j "$JOBS" $chosen
cd /build
# The package is installed under a prefix and as a .deb, and used from outside in C and C++.
python_tests='^python_(package|jax_compat|jax)_test$'
ctest --output-on-failure --no-tests=error -j "$JOBS" \
  -R "^($(echo $chosen | tr ' ' '|')|package_find_package)\$|$python_tests"
(rm -f ./*.deb && cpack -G DEB >/dev/null && dpkg -i ./*.deb)
cd /source
/usr/bin/shardcall --version
/usr/bin/shardcall verify tests/data/hlo/mlp_uneven_b3_d4m2.sdy.hlo | grep '"status": "ok"'
SH
chroot "$root" env JOBS="${JOBS:-$(nproc)}" bash /source/build_here.sh "$tests"
