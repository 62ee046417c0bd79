// SPDX-License-Identifier: Apache-2.0
// Arrays: the bytes as one .npy, and as an .npz of the arguments of a program.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "shardcall/partitioner/runtime/io/npy.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

void TryNpy(absl::string_view bytes) {
  const absl::StatusOr<NpyArray> array = ParseNpy(bytes, "fuzz.npy");
  FuzzRequireDiagnosed(array.status());
  if (!array.ok()) return;
  (void)array->DtypeName();
  const std::string written = NpyHeader(array->kind, array->item_bytes, array->dims) + array->data;
  const absl::StatusOr<NpyArray> again = ParseNpy(written, "again.npy");
  FuzzRequire(again.ok(), "a written array is read", std::string(again.status().ToString()));
  FuzzRequire(again->kind == array->kind && again->item_bytes == array->item_bytes &&
                  again->dims == array->dims && again->data == array->data,
              "a written array is read as it was", array->DtypeName());
}

void TryNpz(absl::string_view bytes) {
  const int file = memfd_create("fuzz", 0);
  FuzzRequire(
      file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
      "the input stands in a file", "");
  std::vector<LeafShape> leaves(5);
  leaves[0].type = ElementType::kF32, leaves[0].dims = {2, 3};
  leaves[1].type = ElementType::kBF16, leaves[1].dims = {4};
  leaves[2].type = ElementType::kS4, leaves[2].dims = {3};
  leaves[3].type = ElementType::kPred;
  leaves[4].type = ElementType::kC64, leaves[4].dims = {0, 2};
  FuzzRequireDiagnosed(ReadNpz("/proc/self/fd/" + std::to_string(file), "arg", leaves).status());
  close(file);
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  shardcall::TryNpy(bytes);
  shardcall::TryNpz(bytes);
  return 0;
}
