#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every step of README.md, with what each prints:
#   bash steps.sh SHARDCALL INCLUDE
# SHARDCALL is the command, INCLUDE the folder of the headers: include of an
# installation, or of the build folder. Works in a folder of its own.
set -euo pipefail
shardcall=$(realpath "$1")
include=$(realpath "$2")
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here"/row_sum.* "$here"/*.json .

# STATUS COMMAND...: the command must end with that status.
step() {
  local expected=$1 status=0
  shift
  echo "\$ $*"
  "${@/#shardcall/$shardcall}" 2>&1 || status=$?
  if [ "$status" -ne "$expected" ]; then
    echo "ended with $status, not $expected"
    exit 1
  fi
}

# The verdict of check-rule's JSON.
verdict() { grep -E '^\$|^  "(verdict|factor|suggestion)"'; }

echo "# 1. a handler"
step 0 cc -std=c11 -Wall -shared -fPIC -I "$include" row_sum.c -o librow_sum.so | sed "s|$include|INCLUDE|"
step 0 shardcall targets --plugin=librow_sum.so | grep -E '^\$|^row_sum' | sed -E 's/  +/  /g'
step 0 shardcall run row_sum.hlo --num-partitions=1 --plugin=librow_sum.so --random-inputs=1 | sed -E 's/, [0-9.e-]+ s$//'
echo "# 2. no rule, no program"
step 1 shardcall partition row_sum.hlo --plugin=librow_sum.so
echo "# 3. a rule that leaves c open, and one that does not hold"
step 1 shardcall partition row_sum.hlo --plugin=librow_sum.so --plugin=open.json
step 3 shardcall check-rule --target=row_sum --plugin=librow_sum.so --plugin=wrong.json | verdict
echo "# 4. the right one"
step 0 shardcall check-rule --target=row_sum --plugin=librow_sum.so --plugin=rule.json | verdict
echo "# 5. the program, four devices, against one"
step 0 shardcall partition row_sum.hlo --plugin=librow_sum.so --plugin=rule.json
step 0 shardcall verify row_sum.hlo --plugin=librow_sum.so --plugin=rule.json
step 0 shardcall explain row_sum.hlo --plugin=librow_sum.so --plugin=rule.json --expect='all-gather=0, bytes<=100'
echo "# 6. the rule moves into the library"
step 0 cc -std=c11 -Wall -shared -fPIC -DWITH_RULE -I "$include" row_sum.c -o librow_sum.so | sed "s|$include|INCLUDE|"
step 0 shardcall check-rule --target=row_sum --plugin=librow_sum.so | verdict
