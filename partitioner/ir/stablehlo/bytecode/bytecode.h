// SPDX-License-Identifier: Apache-2.0
// MLIR bytecode as a tree of operations with generic attributes, as MLIR's documentation describes
// the format (mlir/docs/BytecodeFormat.md). Up to version 4, in which properties of operations are
// entries of their attribute dictionaries and so bear names; newer versions store properties in
// an order that only the dialect knows. Writers take the version as an option.
//
// Attributes and types are those of MLIR's builtin dialect and of StableHLO
// (BuiltinDialectBytecode.td, StablehloBytecode.cpp), whose codes are append-only. Those of other
// dialects stand in the file as text.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// The configuration of a custom call, the one attribute that is bytes.
inline constexpr absl::string_view kBackendConfig = "backend_config";

// Texts and data of attributes and types point into the bytes.
struct Attribute {
  enum class Kind : uint8_t {
    kUnknown,
    kArray,       // items
    kDictionary,  // items: name, value, name, value..
    kString,      // text
    kBytes,       // data: a string that is not UTF-8, or has a NUL
    kSymbol,      // items: a string
    kType,        // type
    kUnit,
    kInteger,      // type, integer
    kFloat,        // type, integer: its bits
    kDenseArray,   // type: of the elements, data
    kDense,        // type: of the tensor, data; one element for all if they are equal
    kCallSite,     // a location; items: callee, caller
    kFileLine,     // items: the file, a string; numbers: line, column, end line, end column
    kFused,        // items
    kNamed,        // items: a string, a location
    kEnum,         // code, integer
    kChannel,      // numbers: handle, type
    kConvolution,  // numbers, lists: those of the input, the kernel, the output
    kDot,          // lists: batch and contracting dimensions: lhs, rhs batch, lhs, rhs contracting
    kGather,       // lists: offset, collapsed, operand and indices batching dimensions, start map;
                   // numbers: the index vector's dimension
    kScatter,      // lists: window, inserted, input and indices batching dimensions, map; numbers
    kOutputAlias,  // lists: output, operand; numbers: operand
    kMeshGroups,   // items: the mesh, then its axes, each a kMeshAxis
    kMeshAxis,     // text: its name; items: the part that is meant, a kAxisPart, if not the whole
    kAxisPart,     // numbers: the size before the part, and its own
    kAssembly,     // text: as MLIR prints it
    kSdy,          // while reading: code, data
  };
  Kind kind = Kind::kUnknown;
  uint32_t code = 0;  // in its dialect
  uint32_t type = 0;
  int64_t integer = 0;
  absl::string_view text, data;
  absl::InlinedVector<uint32_t, 2> items;
  absl::InlinedVector<int64_t, 4> numbers;
  std::vector<std::vector<int64_t>> lists;
};

struct Type {
  enum class Kind : uint8_t { kUnknown, kElement, kTensor, kTuple, kFunction, kToken };
  Kind kind = Kind::kUnknown;
  ElementType element = ElementType::kInvalid;  // also of tensors
  absl::InlinedVector<int64_t, 4> dims;         // of tensors
  bool has_encoding = false;                    // a tensor with bounds of dynamic dimensions
  bool is_complex = false;
  bool is_other_integer = false;          // index, or with a sign: StableHLO's own are signless
  int64_t element_of = -1;                // a tensor's or complex type's element type
  std::vector<uint32_t> inputs, results;  // of functions; tuples have inputs only
};

inline constexpr uint32_t kNoLocation = UINT32_MAX;

struct Region;
struct Operation {
  absl::string_view name;  // "stablehlo.add"
  uint32_t location = 0;
  int64_t attributes = -1;  // a dictionary; -1: none
  absl::InlinedVector<uint32_t, 2> operands, results;
  std::vector<Region> regions;
};
struct Block {
  std::vector<uint32_t> arguments;
  std::vector<uint32_t> argument_locations;  // attributes; kNoLocation where absent
  std::vector<Operation> operations;
};
struct Region {
  std::vector<Block> blocks;
};

class Bytecode {
 public:
  // E035 (kInvalidArgument) if the bytes are cut off or damaged; E035 (kUnimplemented) for a newer
  // version, for branches between blocks, or for regions in more than 64 levels.
  static absl::StatusOr<Bytecode> Read(absl::string_view bytes);

  const Operation& root() const { return root_.blocks[0].operations[0]; }  // builtin.module
  const Attribute& attribute(uint32_t index) const { return attributes_[index]; }
  // An unknown type where there is none of that number.
  const Type& type(uint32_t index) const {
    return index < types_.size() ? types_[index] : no_type_;
  }
  uint32_t type_of(uint32_t value) const { return value_types_[value]; }
  uint32_t num_values() const { return static_cast<uint32_t>(value_types_.size()); }

  // The operation's attribute of that name, or null.
  const Attribute* Find(const Operation& op, absl::string_view name) const;
  // The entry of a dictionary, or null.
  const Attribute* Find(const Attribute& dictionary, absl::string_view name) const;

 private:
  friend class BytecodeReader;
  std::vector<Attribute> attributes_;
  std::vector<Type> types_;
  Type no_type_;
  std::vector<uint32_t> value_types_;
  std::deque<std::string> names_;  // of operations
  Region root_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_H_
