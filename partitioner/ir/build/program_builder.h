// SPDX-License-Identifier: Apache-2.0
// Builds a module of one computation, from its parameters to its result, for programs that make
// HLO in C++:
//
//   ProgramBuilder p("twice", /*num_partitions=*/4);
//   SHARDCALL_ASSIGN_OR_RETURN(InstrId x, p.Parameter(ElementType::kF32, {8}));
//   SHARDCALL_RETURN_IF_ERROR(p.builder().SetSharding(x, "{devices=[4]<=[4]}"));
//   SHARDCALL_ASSIGN_OR_RETURN(InstrId y, p.builder().Add(Opcode::kAdd, {x, x}));
//   SHARDCALL_ASSIGN_OR_RETURN(Module module, std::move(p).Build(y));
//
// Misuse returns a status, as with CheckedBuilder.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_PROGRAM_BUILDER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_PROGRAM_BUILDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class ProgramBuilder {
 public:
  // Without `num_partitions` the program is for one device, or for the number in PartitionOptions.
  explicit ProgramBuilder(absl::string_view name, int64_t num_partitions = 0)
      : module_(std::make_unique<Module>(std::make_shared<Context>())),
        monoids_(module_.get()),
        builder_(module_.get(), module_->AddComputation("main"), &monoids_) {
    module_->header.name = PrintableName(name);
    module_->set_entry(builder_.computation());
    if (num_partitions > 0) {
      module_->header.num_partitions = num_partitions;
      module_->header.has_num_partitions = true;
    }
  }

  CheckedBuilder& builder() { return builder_; }
  Module& module() { return *module_; }
  MonoidTable& monoids() { return monoids_; }
  // Arrays with a descending layout, or with `minor_to_major`; fewer than 2^63 bytes. E021 for an
  // invalid array, E022 for a layout that is not a permutation of its dimensions.
  absl::StatusOr<const Shape*> Array(ElementType type, absl::Span<const int64_t> dims) {
    return builder_.ArrayShape(type, dims);
  }
  absl::StatusOr<const Shape*> Array(ElementType type, absl::Span<const int64_t> dims,
                                     absl::Span<const int64_t> minor_to_major) {
    return builder_.ArrayShape(type, dims, minor_to_major);
  }
  // Adds the next parameter.
  absl::StatusOr<InstrId> Parameter(const Shape* shape) {
    const bool built = module_->num_computations() == 0;  // the builder says so
    const size_t number = built ? 0 : module_->comp(builder_.computation()).parameters.size();
    return builder_.Parameter(static_cast<int64_t>(number), shape);
  }
  absl::StatusOr<InstrId> Parameter(ElementType type, absl::Span<const int64_t> dims) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* const shape, Array(type, dims));
    return Parameter(shape);
  }

  // Returns the verified module; with `targets`, the shapes of custom calls are checked too. The
  // builder cannot be used afterwards.
  absl::StatusOr<Module> Build(InstrId root, const TargetShapes* targets = nullptr) && {
    SHARDCALL_RETURN_IF_ERROR(builder_.SetRoot(root));
    // Other code may have added computations to the module, with any names.
    UniqueNames names(*module_, UniqueNames::kComputations);
    for (int c = 0; c < module_->num_computations(); ++c) {
      Computation& comp = module_->mutable_comp(CompId(c));
      if (!comp.name.empty()) comp.name = names.Take(comp.name);
    }
    SHARDCALL_RETURN_IF_ERROR(VerifyModule(*module_, "", targets));
    Module built = std::move(*module_);
    // Later uses of the builder refer to an empty module, and are refused.
    *module_ = Module(built.shared_context());
    return built;
  }

 private:
  // A name that is valid in HLO text: other characters become '_'.
  static std::string PrintableName(absl::string_view name) {
    std::string out(name.empty() ? "m" : name);
    for (char& c : out) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
    }
    if (!absl::ascii_isalpha(static_cast<unsigned char>(out[0]))) out[0] = '_';
    return out;
  }

  std::unique_ptr<Module> module_;  // on the heap, as the builder refers to it
  MonoidTable monoids_;
  CheckedBuilder builder_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_PROGRAM_BUILDER_H_
