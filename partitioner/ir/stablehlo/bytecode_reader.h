// SPDX-License-Identifier: Apache-2.0
// The steps of Bytecode::Read.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_READER_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode_cursor.h"

namespace shardcall::stablehlo {

class BytecodeReader {
 public:
  absl::StatusOr<Bytecode> Read(absl::string_view bytes);

 private:
  absl::Status ReadSections(absl::string_view bytes);
  void ReadStrings(BytecodeCursor c);
  void ReadDialects(BytecodeCursor c);
  // bytecode_attributes.cc
  void ReadAttributesAndTypes(BytecodeCursor offsets, BytecodeCursor data);
  void ReadBuiltinAttribute(BytecodeCursor& c, Attribute* a);
  void ReadStablehloAttribute(BytecodeCursor& c, Attribute* a);
  void ReadBuiltinType(BytecodeCursor& c, Type* t);
  // bytecode_sdy.cc
  void PrintSdyAttributes();
  std::string SdyText(uint32_t index, int depth);
  std::vector<std::string> SdyList(BytecodeCursor& c, int depth);
  std::string Unknown();

  // The values of one region that sees no others, or of the regions within it.
  struct Scope {
    std::vector<uint32_t> values;  // by the number in the file
    size_t next = 0;               // of the innermost region
  };
  void ReadBlock(BytecodeCursor& c, Scope* scope, int depth, Block* block);
  void ReadOperation(BytecodeCursor& c, Scope* scope, int depth, Operation* op);
  void ReadRegion(BytecodeCursor& c, Scope* scope, int depth, Region* region);
  void SkipUseListOrders(BytecodeCursor& c, size_t num_values);
  uint32_t Define(BytecodeCursor& c, Scope* scope, uint32_t type);

  absl::string_view String(BytecodeCursor& c);
  uint32_t AttributeIndex(BytecodeCursor& c);
  uint32_t TypeIndex(BytecodeCursor& c);
  std::vector<int64_t> SignedList(BytecodeCursor& c);

  static constexpr uint32_t kUndefined = UINT32_MAX;

  Bytecode out_;
  uint64_t version_ = 0;
  bool intact_ = true, supported_ = true;
  bool known_ = true;  // whether the attribute of Shardy that is being printed is known
  std::vector<absl::string_view> strings_, dialects_;
  std::vector<absl::string_view> op_names_;
  std::array<absl::string_view, 9> sections_;
};

}  // namespace shardcall::stablehlo

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_READER_H_
