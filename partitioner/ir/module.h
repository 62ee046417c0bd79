// SPDX-License-Identifier: Apache-2.0
// HLO modules as flat arrays. An instruction is a record in one per-module array with a 32-bit id;
// its operands are a span in an operand pool. A computation lists its instructions in text order,
// operands before users. Modules are built front to back. Only passes change them, by building a
// new module or overwriting whole records.
#ifndef SHARDCALL_PARTITIONER_IR_MODULE_H_
#define SHARDCALL_PARTITIONER_IR_MODULE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {
struct ProtoSource;  // proto/source.h
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

// Interned; sorted by key, values unescaped.
struct FrontendAttributes {
  absl::Span<const std::pair<absl::string_view, absl::string_view>> entries;
  // Empty view with null data if absent.
  absl::string_view Find(absl::string_view key) const;
};
const FrontendAttributes* InternFrontendAttributes(
    Context& context, absl::Span<const std::pair<absl::string_view, absl::string_view>> entries);

// Interned. Ids and lines are 0 where absent.
struct Metadata {
  absl::string_view op_type, op_name, source_file, deduplicated_name, scheduling_name,
      metadata_payload;
  int32_t source_line = 0, source_end_line = 0, source_column = 0, source_end_column = 0;
  int32_t stack_frame_id = 0;
  absl::Span<const int64_t> profile_type;
};
const Metadata* InternMetadata(Context& context, const Metadata& value);

// Equal shardings (by their printed text) share one record.
const HloSharding* InternHloSharding(Context& context, HloSharding value);

struct Instruction {
  Opcode opcode;
  CompId computation;
  const Shape* shape = nullptr;  // with layout
  uint32_t operand_begin = 0, operand_count = 0;
  const Attributes* attrs = nullptr;             // never null
  absl::string_view name;                        // without %; empty: made at printing
  const HloSharding* sharding = nullptr;         // as in the text, or null
  const FrontendAttributes* frontend = nullptr;  // or null
  const Metadata* metadata = nullptr;            // or null
  absl::string_view backend_config;              // interned; raw dictionary with braces, or string
  int32_t extra = -1;                            // index into Module's rare attributes

  template <typename T>
  const T& as() const {  // requires attrs->kind == T::kKind
    return *static_cast<const T*>(attrs);
  }
};

// Attributes that few instructions have.
struct RareAttributes {
  std::vector<InstrId> control_predecessors;
  std::string statistics, origin, result_accuracy;  // as text
};

struct Computation {
  absl::string_view name;
  std::vector<InstrId> instructions;  // text order
  std::vector<InstrId> parameters;    // by number
  InstrId root;
  std::string execution_thread;  // empty: main
};

struct AliasEntry {
  std::vector<int64_t> output_index;
  int64_t parameter = 0;
  std::vector<int64_t> parameter_index;
  bool must_alias = false;
};
struct DonorEntry {
  int64_t parameter = 0;
  std::vector<int64_t> parameter_index;
};
struct StackTables {  // by position, ids start at 1; parent as in the proto (0: none)
  struct Location {
    int32_t file, function, line, end_line, column, end_column;
  };
  struct Frame {
    int32_t location, parent;
  };
  std::vector<absl::string_view> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;
  bool empty() const {
    return files.empty() && functions.empty() && locations.empty() && frames.empty();
  }
};

struct ModuleHeader {
  std::string name;
  bool is_scheduled = false;
  std::vector<AliasEntry> aliases;
  std::vector<DonorEntry> donors;
  bool alias_passthrough_params = false;
  std::vector<const Shape*> entry_parameter_layouts;  // with layouts
  const Shape* entry_result_layout = nullptr;
  std::vector<bool> propagate_to_parameters{false}, propagate_to_output{false};
  int64_t replica_count = 1, num_partitions = 1;
  bool has_num_partitions = false;
  const FrontendAttributes* frontend = nullptr;
  StackTables stack;
  std::string origin_recovery_table, debug_attributes;  // as text
};

class Module {
 public:
  explicit Module(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }

  ModuleHeader header;

  int num_instructions() const { return static_cast<int>(instructions_.size()); }
  int num_computations() const { return static_cast<int>(computations_.size()); }
  const Instruction& instr(InstrId id) const { return instructions_[id.value]; }
  Instruction& mutable_instr(InstrId id) { return instructions_[id.value]; }
  const Computation& comp(CompId id) const { return computations_[id.value]; }
  Computation& mutable_comp(CompId id) { return computations_[id.value]; }
  absl::Span<const InstrId> operands(InstrId id) const { return operands(instr(id)); }
  absl::Span<const InstrId> operands(const Instruction& i) const {
    return absl::MakeConstSpan(operand_pool_).subspan(i.operand_begin, i.operand_count);
  }
  InstrId operand(InstrId id, int k) const { return operands(id)[k]; }
  CompId entry() const { return entry_; }
  void set_entry(CompId id) { entry_ = id; }
  const RareAttributes* rare(const Instruction& i) const {
    return i.extra < 0 ? nullptr : &rare_[i.extra];
  }
  RareAttributes& mutable_rare(InstrId id);

  // Reserves memory for that many more instructions and operands.
  void Reserve(size_t instructions, size_t operands);
  CompId AddComputation(absl::string_view name);
  // Appends to the computation; a parameter is also added to `parameters`. The first form copies
  // all fields of `proto` but operands, computation and extra.
  InstrId Add(CompId comp, const Instruction& proto, absl::Span<const InstrId> operands);
  InstrId Add(CompId comp, Opcode opcode, const Shape* shape, absl::Span<const InstrId> operands,
              const Attributes* attrs = nullptr);
  void SetRoot(CompId comp, InstrId root) { computations_[comp.value].root = root; }

  // Keeps alive text that the names and strings of this module point into.
  void KeepText(std::shared_ptr<const std::string> text) { texts_.push_back(std::move(text)); }
  const std::vector<std::shared_ptr<const std::string>>& texts() const { return texts_; }

  // The parts of the binary message it was read from that the module keeps; else null.
  const std::shared_ptr<const ProtoSource>& proto_source() const { return proto_source_; }
  void KeepProtoSource(std::shared_ptr<const ProtoSource> s) { proto_source_ = std::move(s); }

 private:
  std::shared_ptr<Context> context_;
  std::vector<Instruction> instructions_;
  std::vector<InstrId> operand_pool_;
  std::vector<Computation> computations_;
  std::vector<RareAttributes> rare_;
  CompId entry_;
  std::vector<std::shared_ptr<const std::string>> texts_;
  std::shared_ptr<const ProtoSource> proto_source_;
};

// Computations that `i` calls, in XLA's order (while: body, condition).
absl::InlinedVector<CompId, 2> CalledComputations(const Module& m, const Instruction& i);
// Every computation after those it calls; no recursion.
std::vector<CompId> ComputationPostOrder(const Module& m);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MODULE_H_
