#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the bundle that pack.sh made, on a machine with a GPU: runs everything that needs
# one, within 8 minutes, and writes one JSON with each step's outcome.
#   bash run.sh [RESULT=gpu.json]
exec python3 "$(dirname "$0")/steps.py" "$@"
