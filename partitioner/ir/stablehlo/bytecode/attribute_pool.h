// SPDX-License-Identifier: Apache-2.0
// The attributes, types and strings of a file of MLIR bytecode that is being written. Each has a
// number, by which operations and other attributes refer to it; equal ones have the same. There is
// one short function for each kind of type, attribute and location.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_POOL_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_POOL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_sink.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// Names and attributes of a dictionary, in any order.
using Attrs = absl::InlinedVector<std::pair<absl::string_view, uint32_t>, 6>;

// A part of a file. The end is that of the start where it is 0.
struct FileRange {
  int32_t line = 0, column = 0, end_line = 0, end_column = 0;
};

class AttributePool {
 public:
  // Types. An array of fixed size whose element type StableHLO has (HasType), or a token.
  static bool HasType(const Shape* shape);
  uint32_t Type(const Shape* shape);
  uint32_t Tensor(absl::Span<const int64_t> dims, uint32_t element);
  uint32_t Function(absl::Span<const uint32_t> inputs, absl::Span<const uint32_t> results);
  uint32_t Integer(int bits, codes::Signedness signedness = codes::kSignless);
  uint32_t Index();

  // Attributes of the builtin dialect. Integers are signless.
  uint32_t String(absl::string_view text);
  uint32_t I64(int64_t value) { return IntegerOf(64, value); }
  uint32_t I32(int64_t value) { return IntegerOf(32, value); }
  uint32_t Bool(bool value) { return IntegerOf(1, value ? 1 : 0); }
  uint32_t F32(float value);
  uint32_t Unit();
  uint32_t TypeAttribute(uint32_t type);
  uint32_t Symbol(absl::string_view name);
  uint32_t Array(absl::Span<const uint32_t> items);
  uint32_t Dictionary(Attrs entries);
  uint32_t I64s(absl::Span<const int64_t> values);   // array<i64: ..>
  uint32_t Bools(absl::Span<const int64_t> values);  // array<i1: ..>
  uint32_t Index(absl::Span<const int64_t> values);  // dense<[..]> : tensor<nxindex>
  // Rows of equal length: dense<[[..], ..]> : tensor<n x columns x i64>.
  uint32_t Matrix(absl::Span<const int64_t> elements, int64_t columns);
  // `data`: the elements of a literal, of one element if all are equal.
  uint32_t Dense(const Shape* shape, absl::string_view data);
  // Of StableHLO; the contents begin with the code.
  uint32_t Stablehlo(const BytecodeSink& contents);
  uint32_t Enum(codes::StablehloAttribute code, uint64_t value);
  // Any attribute, as MLIR prints it.
  uint32_t Text(absl::string_view text);

  // Locations.
  uint32_t UnknownLocation();
  uint32_t Named(absl::string_view name, uint32_t inner);
  uint32_t FileLines(absl::string_view file, const FileRange& range);
  uint32_t CallSite(uint32_t callee, uint32_t caller);

  // The number of an operation's name, "stablehlo.add".
  uint32_t OpName(absl::string_view name);

  // The sections of strings, dialects, attributes and types.
  void WriteTo(BytecodeSink* out);

 private:
  // Numbers of dialects; others follow.
  enum : uint32_t { kBuiltin, kStablehlo };

  struct Entry {
    uint32_t dialect;
    bool custom;  // encoded, not text
    absl::string_view bytes;
  };
  struct Table {
    std::vector<Entry> entries;
    absl::flat_hash_map<std::pair<uint32_t, absl::string_view>, uint32_t> numbers;
  };
  struct StringEntry {
    absl::string_view text;
    int64_t attribute = -1;  // the number of its StringAttr, if there is one
  };
  uint32_t Add(Table* table, uint32_t dialect, bool custom, const BytecodeSink& bytes);
  // The bytes begin with the code.
  uint32_t AddBuiltin(Table* table, const BytecodeSink& bytes) {
    return Add(table, kBuiltin, /*custom=*/true, bytes);
  }
  uint32_t IntegerOf(int bits, int64_t value);
  uint32_t ElementTypeOf(ElementType type);
  uint32_t DenseOf(uint32_t tensor, absl::string_view data);
  uint32_t StringNumber(absl::string_view text);
  uint32_t DialectNumber(absl::string_view name);

  Arena arena_;  // has all bytes and texts
  Table attributes_, types_;
  std::vector<StringEntry> strings_;
  absl::flat_hash_map<absl::string_view, uint32_t> string_numbers_;
  std::vector<absl::string_view> dialects_ = {"builtin", "stablehlo"};
  absl::flat_hash_map<absl::string_view, uint32_t> op_numbers_;
  std::vector<std::pair<uint32_t, uint32_t>> ops_;  // dialect, string
  absl::flat_hash_map<const Shape*, uint32_t> shape_types_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_POOL_H_
