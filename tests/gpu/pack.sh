#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what a machine with a GPU and nothing of ours needs to run the tests that need
# one: programs with their libraries, Open MPI, examples and data.
#   bash tests/gpu/pack.sh [OUT=build/gpu_bundle.tar.gz] [BUILD=build]
# There: tar xzf gpu_bundle.tar.gz && bash gpu_bundle/run.sh RESULT.json
# It brings its own NCCL, cuBLASLt and cuSPARSE libraries (those of Python wheels will do),
# driver and, for the steps with JAX, jax with its CUDA plugin.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/gpu_bundle.tar.gz}
build=${2:-build}
programs=(shardcall run_program own_collective nccl_conformance bench_collectives
          kernels_cuda_handlers_test kernels_cuda_targets_test)
ninja -C "$build" "${programs[@]}" shardcall_pjrt_plugin

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/gpu_bundle
mkdir -p "$bundle"/{bin,lib,openmpi,pmix,examples}
for program in "${programs[@]}"; do cp "$build/bin/$program" "$bundle/bin/"; done
cp "$build"/lib/libshardcall_pjrt{,_whole}.so "$bundle/lib/"
cp -r examples/programs examples/jax "$bundle/examples/"
cp tests/gpu/{run.sh,steps.py,under_jax.py,jax_programs.py,one_device.hlo,library_targets.hlo} "$bundle/"

# The Python package, of the build that works with CPython 3.12 and later, and the package of
# the plugin that wraps JAX's.
if [ -e "$build/lib/python/shardcall/_core.abi3.so" ]; then
  mkdir "$bundle/python"
  cp -rL "$build/lib/python/shardcall" partitioner/bindings/pjrt_wrapper/wheel/shardcall_pjrt \
    "$bundle/python/"
  rm -rf "$bundle"/python/*/__pycache__ "$bundle"/python/shardcall/_core.cpython-*
  for part in '' _whole; do
    ln -s "../../lib/libshardcall_pjrt$part.so" "$bundle/python/shardcall_pjrt/"
  done
fi
# A kernel for CUDA of a library of its own, where XLA's headers are at hand.
headers=$(python3 -c 'import jax; print(jax.ffi.include_dir())' 2>/dev/null || true)
if [ -n "$headers" ] && cmake -S examples/cuda_plugin -B "$work/plugin" \
     -DXLA_FFI_INCLUDE="$headers" > "$work/plugin.log" && cmake --build "$work/plugin" >> "$work/plugin.log"
then
  cp "$work/plugin/librow_softmax.so" "$work/plugin/row_softmax.json" \
    examples/cuda_plugin/row_softmax.hlo "$bundle/"
fi

# Open MPI with its components, but for those of networks that one machine has not.
where() { ompi_info --parsable --path "$1" | cut -d: -f3-; }
cp -L "$(command -v orterun)" "$bundle/bin/mpirun"
cp -L "$(where pkglibdir)"/*.so "$bundle/openmpi/"
for unused in ucx ofi psm usnic portals openib hcoll slurm lsf tm ugni fs_ fbtl fcoll io_ sharedfp \
              cuda monitoring oshmem spml scoll sshmem memheap; do
  rm -f "$bundle"/openmpi/*"$unused"*
done
pmix=$(dirname "$(ldconfig -p | awk '/libpmix.so.2 /{print $NF; exit}')")
for folder in "$pmix"/pmix2/lib/pmix "$pmix"/pmix; do
  [ ! -d "$folder" ] || cp -L "$folder"/*.so "$bundle/pmix/"
done
cp -r "$(where pkgdatadir)" "$bundle/openmpi/share"

# Every library that these ask for, but for the system's and CUDA's.
system='linux-vdso|ld-linux|libc\.so|libm\.so|libpthread|libdl\.|librt\.|libresolv|libutil'
system+='|libstdc\+\+|libgcc_s|libcuda|libnccl'
needed() {
  find "$bundle" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec ldd {} + 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u | grep -vE "$system" || true
}
needed | while read -r name path; do
  [ -e "$bundle/lib/$name" ] || cp -L "$path" "$bundle/lib/$name"
done
strip --strip-unneeded "$bundle"/bin/* "$bundle"/lib/*.so* "$bundle"/python/shardcall/*.so \
  2>/dev/null || true

# Nothing of ours is looked for outside.
outside=$(env -i LD_LIBRARY_PATH="$bundle/lib" find "$bundle" -type f \
  \( -name '*.so*' -o -path '*/bin/*' \) -exec ldd {} + 2>/dev/null |
  awk '$2 == "=>" && $3 !~ "^'"$bundle"'/"' | grep -vE "$system" || true)
[ -z "$outside" ] || { echo "these are looked for outside of the bundle:" "$outside" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
tar -C "$work" -czf "$out" gpu_bundle
bytes=$(stat -c %s "$out")
echo "$out: $((bytes / 1000000)) MB"
[ "$bytes" -lt 60000000 ] || { echo 'it was to be below 60 MB' >&2; exit 1; }
