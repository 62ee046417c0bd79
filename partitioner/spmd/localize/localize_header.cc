// SPDX-License-Identifier: Apache-2.0
// Makes the local module's header: entry layouts, aliases and donors for local shapes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
inline namespace internal {
namespace {

// The flat index of the leaf at `index` of a tuple shape, or -1 if `index` is not a leaf.
int FlatIndex(const Shape* shape, absl::Span<const int64_t> index) {
  int flat = 0;
  for (int64_t i : index) {
    if (!shape->IsTuple() || i < 0 || i >= static_cast<int64_t>(shape->tuple().size())) return -1;
    flat += FirstLeafOf(*shape, static_cast<int>(i));
    shape = shape->tuple()[i];
  }
  return shape->IsTuple() ? -1 : flat;
}

// The global entry layout `layout` with the local dims.
const Shape* WithLocalDims(Context& context, const Shape* layout, const Shape* local) {
  if (layout->IsTuple()) {
    std::vector<const Shape*> elements;
    for (size_t k = 0; k < layout->tuple().size(); ++k) {
      elements.push_back(WithLocalDims(context, layout->tuple()[k], local->tuple()[k]));
    }
    return context.MakeTuple(elements);
  }
  return layout->IsArray() ? context.WithDims(layout, local->dims()) : layout;
}

}  // namespace

void Localizer::MakeHeader() {
  Module& m = result_.module;
  const ModuleHeader& from = global_.header;
  m.header = from;
  m.header.frontend = stated_.OfResult(
      from.frontend, global_.instr(global_.comp(global_.entry()).root).shape, plan_.outputs);
  m.header.propagate_to_parameters = {false};
  m.header.propagate_to_output = {false};
  m.header.num_partitions = program_.num_partitions;
  m.header.has_num_partitions = true;
  m.set_entry(LocalComputation(global_.entry()));
  for (const auto& text : global_.texts()) m.KeepText(text);

  const Computation& entry = m.comp(m.entry());
  const Computation& global_entry = global_.comp(global_.entry());
  if (m.header.entry_result_layout == nullptr) {
    // Without layouts in the header, the global instructions have them, but the local ones may
    // not.
    m.header.entry_result_layout = global_.instr(global_entry.root).shape;
    m.header.entry_parameter_layouts.clear();
    for (InstrId p : global_entry.parameters) {
      m.header.entry_parameter_layouts.push_back(global_.instr(p).shape);
    }
  }
  for (size_t p = 0; p < entry.parameters.size(); ++p) {
    const Shape* local_shape = m.instr(entry.parameters[p]).shape;
    if (p < m.header.entry_parameter_layouts.size()) {
      m.header.entry_parameter_layouts[p] =
          WithLocalDims(context_, m.header.entry_parameter_layouts[p], local_shape);
    }
    const Shape* shape = global_.instr(global_entry.parameters[p]).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) {
      const Sharding* s = plan_.parameters[result_.parameters.size()];
      result_.parameter_shapes.push_back(shape->leaf(k));
      result_.parameters.push_back(s == nullptr ? nullptr
                                                : CanonicalState(context_, s, shape->leaf(k)));
    }
  }
  const Shape* result_shape = global_.instr(global_entry.root).shape;
  if (m.header.entry_result_layout != nullptr) {
    m.header.entry_result_layout =
        WithLocalDims(context_, m.header.entry_result_layout, m.instr(entry.root).shape);
  }
  for (int k = 0; k < result_shape->num_leaves(); ++k) {
    const Sharding* s = plan_.outputs[k];
    result_.output_shapes.push_back(result_shape->leaf(k));
    result_.outputs.push_back(s == nullptr ? nullptr
                                           : CanonicalState(context_, s, result_shape->leaf(k)));
  }

  result_.warnings = plan_.warnings;
  // An alias requires equal local shapes on both sides.
  const Shape* out = m.instr(entry.root).shape;
  auto& aliases = m.header.aliases;
  aliases.erase(
      std::remove_if(aliases.begin(), aliases.end(),
                     [&](const AliasEntry& a) {
                       if (a.parameter < 0 ||
                           a.parameter >= static_cast<int64_t>(entry.parameters.size())) {
                         return true;
                       }
                       const Shape* in = m.instr(entry.parameters[a.parameter]).shape;
                       const int i = FlatIndex(in, a.parameter_index);
                       const int o = FlatIndex(out, a.output_index);
                       if (i >= 0 && o >= 0 && in->leaf(i)->bare() == out->leaf(o)->bare())
                         return false;
                       result_.warnings.push_back(absl::StrCat(
                           "W220 the alias of parameter ", a.parameter,
                           " was dropped: the result has another local shape than the parameter"));
                       return true;
                     }),
      aliases.end());
}

}  // namespace internal
}  // namespace shardcall
