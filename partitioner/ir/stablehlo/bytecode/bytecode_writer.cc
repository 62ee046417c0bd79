// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_writer.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

class Writer {
 public:
  explicit Writer(absl::Span<const uint32_t> value_types)
      : value_types_(value_types), numbers_(value_types.size()) {}

  // `next`: the number of the next value of the region around it.
  void WriteOperation(const WrittenOperation& op, uint32_t around, uint32_t* next,
                      BytecodeSink* out) {
    const bool operands = !op.operands.empty(), results = !op.results.empty();
    out->VarInt(op.name);
    out->Byte(static_cast<uint8_t>(
        (op.attributes >= 0 ? codes::kHasAttributes : 0) | (results ? codes::kHasResults : 0) |
        (operands ? codes::kHasOperands : 0) | (op.regions.empty() ? 0 : codes::kHasRegions)));
    out->VarInt(op.location);
    if (op.attributes >= 0) out->VarInt(static_cast<uint64_t>(op.attributes));
    if (results) {
      out->VarInt(op.results.size());
      for (uint32_t value : op.results) out->VarInt(value_types_[value]);
    }
    if (operands) {
      out->VarInt(op.operands.size());
      for (uint32_t value : op.operands) out->VarInt(numbers_[value]);
    }
    for (uint32_t value : op.results) numbers_[value] = (*next)++;
    if (op.regions.empty()) return;
    out->VarIntWithFlag(op.regions.size(), op.isolated);
    if (!op.isolated) {
      for (const WrittenRegion& region : op.regions) WriteRegion(region, around, out);
      return;
    }
    BytecodeSink own;
    for (const WrittenRegion& region : op.regions) WriteRegion(region, 0, &own);
    out->Section(codes::kIr, own.bytes());
  }

 private:
  // `first`: the number of values of all regions around it that it sees.
  void WriteRegion(const WrittenRegion& region, uint32_t first, BytecodeSink* out) {
    const WrittenBlock& block = region.block;
    uint32_t values = static_cast<uint32_t>(block.arguments.size());
    for (const WrittenOperation& op : block.operations) {
      values += static_cast<uint32_t>(op.results.size());
    }
    out->VarInt(1);  // block
    out->VarInt(values);
    out->VarIntWithFlag(block.operations.size(), !block.arguments.empty());
    uint32_t next = first;
    if (!block.arguments.empty()) {
      out->VarInt(block.arguments.size());
      for (size_t k = 0; k < block.arguments.size(); ++k) {
        const uint32_t value = block.arguments[k];
        out->VarIntWithFlag(value_types_[value], /*has a location=*/true);
        out->VarInt(block.argument_locations[k]);
        numbers_[value] = next++;
      }
      out->Byte(0);  // no orders of uses
    }
    for (const WrittenOperation& op : block.operations) {
      WriteOperation(op, first + values, &next, out);
    }
  }

  absl::Span<const uint32_t> value_types_;
  std::vector<uint32_t> numbers_;  // of values, within the regions that see them
};

}  // namespace

std::string WriteBytecode(const WrittenOperation& module, absl::Span<const uint32_t> value_types,
                          AttributePool& pool) {
  BytecodeSink ir;
  ir.VarIntWithFlag(1, /*has arguments=*/false);
  uint32_t next = 0;
  Writer(value_types).WriteOperation(module, 0, &next, &ir);
  BytecodeSink out;
  out.Append(absl::string_view(codes::kMagic, 4));
  out.VarInt(codes::kNewestVersion);
  out.ZeroTerminated("shardcall");
  pool.WriteTo(&out);
  out.Section(codes::kIr, ir.bytes());
  return std::string(out.bytes());
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
