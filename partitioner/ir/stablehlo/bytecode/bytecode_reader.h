// SPDX-License-Identifier: Apache-2.0
// The steps of Bytecode::Read.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_READER_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_cursor.h"
#include "shardcall/sharding/base/utf8.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// Whether HLO text can have it.
inline bool IsHloText(absl::string_view text) {
  return IsUtf8(text) && text.find('\0') == absl::string_view::npos;
}

class BytecodeReader {
 public:
  absl::StatusOr<Bytecode> Read(absl::string_view bytes);

 private:
  absl::Status ReadSections(absl::string_view bytes);
  void ReadStrings(BytecodeCursor c);
  void ReadDialects(BytecodeCursor c);
  // bytecode_attributes.cc
  void ReadAttributesAndTypes(BytecodeCursor offsets, BytecodeCursor data);
  void ReadAttribute(absl::string_view dialect, bool custom, absl::string_view bytes, Attribute* a);
  bool ReadLocation(uint64_t code, BytecodeCursor& c, Attribute* a);
  void ReadBuiltinAttribute(uint64_t code, BytecodeCursor& c, Attribute* a);
  void ReadStablehloAttribute(BytecodeCursor& c, Attribute* a);
  void ReadNumber(Attribute::Kind kind, BytecodeCursor& c, Attribute* a);
  void ReadItems(BytecodeCursor& c, size_t per_entry, Attribute* a);
  void CheckDictionaries();
  void RefuseBytesInNames();
  // bytecode_types.cc
  void ReadType(absl::string_view dialect, bool custom, absl::string_view bytes, Type* t);
  void ReadBuiltinType(BytecodeCursor& c, Type* t);
  void SetElementTypes();
  // bytecode_sdy.cc
  void PrintSdyAttributes();

  // The values of one region that sees no others, or of the regions within it.
  struct Scope {
    std::vector<uint32_t> values;  // by the number in the file; grows as they are defined
    size_t next = 0, end = 0;      // the numbers that the innermost region still has
  };
  void ReadBlock(BytecodeCursor& c, Scope* scope, int depth, Block* block);
  void ReadOperation(BytecodeCursor& c, Scope* scope, int depth, Operation* op);
  void ReadRegion(BytecodeCursor& c, Scope* scope, int depth, Region* region);
  void SkipUseListOrders(BytecodeCursor& c, size_t num_values);
  uint32_t Define(BytecodeCursor& c, Scope* scope, uint32_t type);

  // A string of the file; `Text` is that where HLO has text, which is UTF-8 without NULs.
  absl::string_view String(BytecodeCursor& c);
  absl::string_view Text(BytecodeCursor& c);
  void RefuseBytesInTexts(const Operation& op);
  uint32_t AttributeIndex(BytecodeCursor& c);
  uint32_t TypeIndex(BytecodeCursor& c);
  std::vector<int64_t> SignedList(BytecodeCursor& c);

  static constexpr uint32_t kUndefined = UINT32_MAX;

  Bytecode out_;
  uint64_t version_ = 0;
  bool intact_ = true, supported_ = true, utf8_ = true;
  bool has_bytes_ = false;  // some attribute is of kind kBytes
  std::vector<absl::string_view> strings_, dialects_;
  std::vector<absl::string_view> op_names_;
  std::array<absl::string_view, 9> sections_;
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_BYTECODE_READER_H_
