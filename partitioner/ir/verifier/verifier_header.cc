// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"

namespace shardcall {
inline namespace internal {
namespace verifier {
namespace {

std::string Index(absl::Span<const int64_t> index) {
  return absl::StrCat("{", absl::StrJoin(index, ","), "}");
}

// The shape of parameter `parameter` at `index`; null after it has set the error.
const Shape* ParameterPart(const Module& m, const char* attribute, int64_t parameter,
                           absl::Span<const int64_t> index, Fault* error) {
  const Computation& entry = m.comp(m.entry());
  const int64_t count = static_cast<int64_t>(entry.parameters.size());
  if (parameter < 0 || parameter >= count) {
    Fail(error, "E026", absl::StrCat(attribute, " names a parameter that does not exist"), "",
         absl::StrCat("[0,", count, ")"), absl::StrCat(parameter));
    return nullptr;
  }
  const Shape* shape = m.instr(entry.parameters[parameter]).shape;
  const Shape* part = PartAt(shape, index);
  if (part == nullptr) {
    Fail(error, "E026",
         absl::StrCat(attribute, " names a part of parameter ", parameter, " that does not exist"),
         "", absl::StrCat("an index into ", ShapeText(shape)), Index(index));
  }
  return part;
}

bool CheckLayout(const Module& m, Fault* error) {
  const ModuleHeader& h = m.header;
  const Computation& entry = m.comp(m.entry());
  if (h.entry_result_layout == nullptr && h.entry_parameter_layouts.empty()) return true;
  const std::string fix = "correct entry_computation_layout or leave it out";
  if (h.entry_parameter_layouts.size() != entry.parameters.size()) {
    return Fail(error, "E026", "entry_computation_layout has the wrong number of parameters", "",
                absl::StrCat(entry.parameters.size()),
                absl::StrCat(h.entry_parameter_layouts.size()), fix);
  }
  for (size_t k = 0; k < entry.parameters.size(); ++k) {
    const Shape* want = m.instr(entry.parameters[k]).shape;
    if (h.entry_parameter_layouts[k] == nullptr ||
        CompatibleShapes(want, h.entry_parameter_layouts[k])) {
      continue;
    }
    return Fail(error, "E026",
                absl::StrCat("entry_computation_layout has the wrong shape for parameter ", k), "",
                ShapeText(want), ShapeText(h.entry_parameter_layouts[k]), fix);
  }
  const Shape* result = m.instr(entry.root).shape;
  if (h.entry_result_layout != nullptr && !CompatibleShapes(result, h.entry_result_layout)) {
    return Fail(error, "E026", "entry_computation_layout has the wrong result", "",
                ShapeText(result), ShapeText(h.entry_result_layout), fix);
  }
  return true;
}

bool CheckAliases(const Module& m, Fault* error) {
  const Shape* result = m.instr(m.comp(m.entry()).root).shape;
  std::vector<std::vector<int64_t>> outputs;
  std::vector<std::pair<int64_t, std::vector<int64_t>>> inputs;
  for (const AliasEntry& a : m.header.aliases) {
    const Shape* output = PartAt(result, a.output_index);
    if (output == nullptr) {
      return Fail(error, "E026", "input_output_alias names an output that does not exist", "",
                  absl::StrCat("an index into ", ShapeText(result)), Index(a.output_index));
    }
    const Shape* input =
        ParameterPart(m, "input_output_alias", a.parameter, a.parameter_index, error);
    if (input == nullptr) return false;
    if (input->byte_size() != output->byte_size()) {
      return Fail(error, "E026",
                  absl::StrCat("input_output_alias joins output ", Index(a.output_index),
                               " and parameter ", a.parameter, " of different sizes"),
                  "", ShapeText(output), ShapeText(input));
    }
    outputs.push_back(a.output_index);
    inputs.emplace_back(a.parameter, a.parameter_index);
  }
  std::sort(outputs.begin(), outputs.end());
  const auto twice = std::adjacent_find(outputs.begin(), outputs.end());
  if (twice != outputs.end()) {
    return Fail(error, "E026", "input_output_alias names an output twice", "", "each at most once",
                Index(*twice));
  }
  std::sort(inputs.begin(), inputs.end());
  const auto reused = std::adjacent_find(inputs.begin(), inputs.end());
  if (reused != inputs.end()) {
    return Fail(error, "E026", "input_output_alias names a parameter twice", "",
                "each at most once", absl::StrCat(reused->first, " ", Index(reused->second)));
  }
  for (const DonorEntry& d : m.header.donors) {
    if (ParameterPart(m, "buffer_donor", d.parameter, d.parameter_index, error) == nullptr) {
      return false;
    }
    const std::pair<int64_t, std::vector<int64_t>> donor(d.parameter, d.parameter_index);
    if (std::binary_search(inputs.begin(), inputs.end(), donor)) {
      return Fail(error, "E026", "buffer_donor names what input_output_alias has already", "",
                  "each part of a parameter in one of them",
                  absl::StrCat(d.parameter, " ", Index(d.parameter_index)),
                  "leave it out of buffer_donor");
    }
  }
  return true;
}

}  // namespace

bool CheckHeader(const Module& m, Fault* error) {
  const ModuleHeader& h = m.header;
  if (h.num_partitions < 1 || h.replica_count < 1) {
    return Fail(error, "E026", "num_partitions and replica_count must be positive", "", "1 or more",
                absl::StrCat(h.num_partitions, " and ", h.replica_count));
  }
  int64_t devices;
  if (__builtin_mul_overflow(h.num_partitions, h.replica_count, &devices) ||
      devices > kMaxDevices) {
    return Fail(error, "E026", "there are too many devices", "",
                absl::StrCat("at most ", kMaxDevices),
                absl::StrCat(h.num_partitions, " x ", h.replica_count));
  }
  return CheckLayout(m, error) && CheckAliases(m, error);
}

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
