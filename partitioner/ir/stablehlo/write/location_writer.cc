// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/write/location_writer.h"

#include <utility>
#include <vector>

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// Frames further out are left out.
constexpr size_t kMaxFrames = 256;

}  // namespace

// Frames of a stack, from the outermost one: each is the call site of the one within it.
uint32_t LocationWriter::Frame(int32_t frame) {
  const StackTables& stack = module_.header.stack;
  const auto at = [](const auto& table, int32_t id) {  // ids start at 1
    return id >= 1 && static_cast<size_t>(id) <= table.size() ? &table[id - 1] : nullptr;
  };
  std::vector<int32_t> chain;
  uint32_t location = 0;
  bool any = false;
  for (int32_t f = frame; at(stack.frames, f) != nullptr && chain.size() < kMaxFrames;
       f = at(stack.frames, f)->parent) {
    if (const auto it = frames_.find(f); it != frames_.end()) {
      location = it->second;
      any = true;
      break;
    }
    chain.push_back(f);
  }
  while (!chain.empty()) {
    const int32_t f = chain.back();
    chain.pop_back();
    const StackTables::Location* place = at(stack.locations, at(stack.frames, f)->location);
    if (place == nullptr) continue;
    const absl::string_view* file = at(stack.files, place->file);
    const absl::string_view* function = at(stack.functions, place->function);
    uint32_t own =
        pool_.FileLines(file == nullptr ? "" : *file,
                        {place->line, place->column, place->end_line, place->end_column});
    if (function != nullptr && !function->empty()) own = pool_.Named(*function, own);
    location = any ? pool_.CallSite(own, location) : own;
    any = true;
    frames_[f] = location;
  }
  return any ? location : pool_.UnknownLocation();
}

uint32_t LocationWriter::Of(const Metadata* metadata) {
  if (metadata == nullptr) return pool_.UnknownLocation();
  if (const auto it = known_.find(metadata); it != known_.end()) return it->second;
  uint32_t location;
  if (metadata->stack_frame_id > 0) {
    location = Frame(metadata->stack_frame_id);
  } else if (!metadata->source_file.empty()) {
    location = pool_.FileLines(metadata->source_file,
                               {metadata->source_line, metadata->source_column,
                                metadata->source_end_line, metadata->source_end_column});
  } else {
    location = pool_.UnknownLocation();
  }
  if (!metadata->op_name.empty()) location = pool_.Named(metadata->op_name, location);
  return known_[metadata] = location;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
