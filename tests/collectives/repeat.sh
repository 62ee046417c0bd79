#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Conformance and faults of the collectives many times in a row, in process and
# over MPI on 2, 3, 4 and 8 ranks: takes most of an hour, so no test runs it.
#   bash tests/collectives/repeat.sh build/bin [TIMES=20] [JOBS=2]
# Prints how often each passed; ends with status 1 if any failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 times=${2:-20} jobs=${3:-2}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
status=0

repeat() {  # name, command: counts the runs that pass
  local name=$1 passed=0 i
  shift
  for ((i = 0; i < times; ++i)); do
    if "$@" >"$log" 2>&1; then
      passed=$((passed + 1))
    else
      grep -E 'FAILED|Failure|rank [0-9]+:' "$log" | head -20 >&2
      status=1
    fi
  done
  printf '%-44s %d/%d\n' "$name" "$passed" "$times"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
repeat 'conformance in process, 1, 2, 3, 4, 8 devices' "$bin/collectives_in_process_test"
repeat 'faults in process, 2, 3, 4, 8 devices' "$bin/collectives_in_process_fault_test"
if [ -x "$bin/mpi_conformance" ]; then
  for ranks in 2 3 4 8; do
    repeat "conformance over MPI, $ranks ranks" timeout 600 mpirun -np "$ranks" "$bin/mpi_conformance"
  done
  python3 "$here/run_mpi_faults.py" --program="$bin/mpi_fault" --ranks=2,3,4,8 --repeat="$times" \
    --jobs="$jobs" || status=1
fi
exit $status
