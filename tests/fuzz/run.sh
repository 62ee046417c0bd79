#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer (clang).
#   bash tests/fuzz/run.sh [--seconds=60 | --long] [--keep=DIR] [TARGET...]
# Each target runs that long (--long: 20 minutes) in one process at low priority.
# DIR (default build-fuzz/corpus) holds what was found, a folder per target; it is
# minimised at the end. A finding stands in DIR/TARGET.findings and makes the exit
# status 1. TARGET is as `hlo_text_fuzz`; without one all run.
set -euo pipefail
source "$(dirname "$0")/../../cmake/setup.sh"

seconds=60 keep= targets=()
for arg in "$@"; do
  case $arg in
    --seconds=*) seconds=${arg#*=} ;;
    --long) seconds=1200 ;;
    --keep=*) keep=${arg#*=} ;;
    -*) echo "unknown flag $arg" >&2; exit 2 ;;
    *) targets+=("$arg") ;;
  esac
done
build=$SHARDCALL_ROOT/build-fuzz
keep=${keep:-$build/corpus}
fuzz=$SHARDCALL_ROOT/tests/fuzz
command -v clang++ >/dev/null || { echo "tests/fuzz/run.sh: no clang++ here" >&2; exit 2; }
(cd "$SHARDCALL_ROOT" && cmake --preset fuzz >/dev/null)
if [ ${#targets[@]} -eq 0 ]; then
  for source in "$fuzz"/*_fuzz.cc; do targets+=("$(basename "$source" .cc)"); done
fi
ninja -C "$build" "${targets[@]}"

status=0
for target in "${targets[@]}"; do
  name=${target%_fuzz} dictionary= seeds=()
  case $name in
    hlo_text) seeds=("$SHARDCALL_ROOT/tests/data/hlo_text" "$fuzz/corpus/programs") dictionary=hlo_text ;;
    hlo_proto) seeds=("$SHARDCALL_ROOT/tests/data/hlo_text" "$fuzz/corpus/programs") dictionary=hlo_text ;;
    partition|evaluate) seeds=("$fuzz/corpus/programs") dictionary=hlo_text ;;
    *) dictionary=$name ;;
  esac
  [ -d "$fuzz/corpus/$name" ] && seeds+=("$fuzz/corpus/$name")
  flags=(-rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=10 -max_len=20000)
  [ -f "$fuzz/$dictionary.dict" ] && flags+=("-dict=$fuzz/$dictionary.dict")
  found=$keep/$target.findings
  mkdir -p "$keep/$target" "$found"
  echo "== $target, $seconds s"
  nice -n 19 "$build/bin/$target" "${flags[@]}" -max_total_time="$seconds" \
    -artifact_prefix="$found/" -print_final_stats=1 "$keep/$target" "${seeds[@]}" \
    >"$keep/$target.log" 2>&1 || { status=1; grep -E "ERROR|demand broken|runtime error|SUMMARY" "$keep/$target.log" || tail -5 "$keep/$target.log"; }
  grep -E "stat::(number_of_executed_units|peak_rss_mb)" "$keep/$target.log" || true
  mkdir -p "$keep/$target.less"
  nice -n 19 "$build/bin/$target" -merge=1 "${flags[@]}" "$keep/$target.less" "$keep/$target" \
    >/dev/null 2>&1 && rm -rf "$keep/$target" && mv "$keep/$target.less" "$keep/$target"
  rm -rf "$keep/$target.less"
done
exit $status
