// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/build/started_calls.h"
#include "shardcall/partitioner/ir/build/started_config.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/known_targets.h"

namespace shardcall {
inline namespace internal {
namespace {

class CallsWriter {
 public:
  explicit CallsWriter(Module module)
      : m_(std::move(module)), context_(m_.context()), wrapping_(m_.num_computations()) {}

  Module Run() && {
    std::vector<InstrId> user(m_.num_instructions());
    std::vector<int> users(m_.num_instructions());
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (HasTrait(KnownTargetOf(m_.instr(InstrId(k))), kOrders)) continue;
      for (InstrId o : m_.operands(InstrId(k))) {
        user[o.value] = InstrId(k);
        ++users[o.value];
      }
    }
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (users[k] == 1) Write(InstrId(k), user[k]);
    }
    // Where another start, which is none of these, calls the same computation, it stays.
    for (int k = 0; k < m_.num_instructions(); ++k) {
      for (CompId c : CalledComputations(m_, m_.instr(InstrId(k)))) wrapping_[c.value] = false;
    }
    return absl::c_linear_search(wrapping_, true) ? WithoutWrapping() : std::move(m_);
  }

 private:
  // A copy without the computations of starts that are calls now.
  Module WithoutWrapping() const {
    Module out(m_.shared_context());
    ModuleCloner cloner(m_, &out);
    cloner.CopyHeader();
    for (CompId c : ComputationPostOrder(m_)) {
      if (wrapping_[c.value]) continue;
      cloner.AddComputation(c);
      for (InstrId id : m_.comp(c).instructions) cloner.Clone(id);
      cloner.SetRoot(c);
    }
    out.set_entry(cloner.now(m_.entry()));
    return out;
  }

  // The instruction that is the collective which `id` starts; invalid if it starts none.
  InstrId Started(InstrId id) const {
    const Instruction& i = m_.instr(id);
    if (i.operand_count != 1) return InstrId();
    if (const AsyncForms* const forms = FormsStartedBy(i.opcode)) {
      return FindStarted(forms->whole) == nullptr ? InstrId() : id;
    }
    if (i.opcode != Opcode::kAsyncStart) return InstrId();
    const InstrId inner = WrappedCollective(m_, i);
    return inner.valid() && FindStarted(m_.instr(inner).opcode) != nullptr ? inner : InstrId();
  }

  void Write(InstrId start, InstrId done) {
    const InstrId inner = Started(start);
    if (!inner.valid()) return;
    const Opcode opcode = m_.instr(inner).opcode;
    const AsyncForms* const forms = FormsStartedBy(opcode);
    const StartedCollective& of = *FindStarted(forms != nullptr ? forms->whole : opcode);
    const Opcode end = forms != nullptr ? forms->done : Opcode::kAsyncDone;
    if (m_.instr(done).opcode != end || !m_.instr(done).shape->IsArray()) return;
    StartedConfig config;
    CompId reducer;
    if (of.op == Opcode::kCollectivePermute) {
      const auto& attrs = m_.instr(inner).as<PermuteAttrs>();
      config.channel_id = attrs.channel_id;
      if (!attrs.slice_sizes.empty()) return;
      for (size_t k = 0; k < attrs.sources.size(); ++k) {
        config.lists.push_back({attrs.sources[k], attrs.targets[k]});
      }
    } else {
      const auto& attrs = m_.instr(inner).as<CollectiveAttrs>();
      auto groups = ListedGroups(attrs.groups, m_.header.num_partitions);
      if (!groups.has_value()) return;
      config = {
          attrs.dimension,   attrs.dimension, -1, attrs.channel_id, attrs.use_global_device_ids,
          *std::move(groups)};
      if (!config.lists.empty()) config.split_count = static_cast<int64_t>(config.lists[0].size());
      reducer = attrs.to_apply;
    }
    if (inner != start) wrapping_[m_.instr(inner).computation.value] = true;
    SetCall(start, absl::StrCat(OpcodeText(of.op), kStartSuffix), m_.instr(done).shape, reducer);
    Instruction& i = m_.mutable_instr(start);
    std::vector<std::pair<absl::string_view, absl::string_view>> entries;
    if (i.frontend != nullptr)
      entries.assign(i.frontend->entries.begin(), i.frontend->entries.end());
    const std::string text = StartedConfigText(of, config);
    entries.push_back({kAsyncCollectiveConfig, text});
    i.frontend = InternFrontendAttributes(context_, entries);
    SetCall(done, absl::StrCat(OpcodeText(of.op), kDoneSuffix), m_.instr(done).shape, CompId());
  }

  void SetCall(InstrId id, absl::string_view target, const Shape* shape, CompId called) {
    CustomCallAttrs attrs;
    attrs.target = target;
    if (called.valid()) attrs.called_computations = absl::MakeConstSpan(&called, 1);
    Instruction& i = m_.mutable_instr(id);
    i.opcode = Opcode::kCustomCall;
    i.attrs = InternAttributes(context_, attrs);
    i.shape = shape;
  }

  Module m_;
  Context& context_;
  std::vector<bool> wrapping_;  // by computation
};

}  // namespace

Module WithStartedCalls(Module module) { return CallsWriter(std::move(module)).Run(); }

}  // namespace internal
}  // namespace shardcall
