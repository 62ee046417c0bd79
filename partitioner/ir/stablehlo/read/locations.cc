// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/read/locations.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;
// Of one location. Call sites are shared in the file, so that a few may stand for many frames.
constexpr int kMaxFrames = 256;

}  // namespace

int32_t Locations::IdOf(absl::string_view text, std::vector<absl::string_view>* table,
                        absl::flat_hash_map<absl::string_view, int32_t>* ids) {
  const auto [it, inserted] = ids->try_emplace(text, static_cast<int32_t>(table->size()) + 1);
  if (inserted) table->push_back(module_.context().Intern(text));
  return it->second;
}

int32_t Locations::Frame(uint32_t location, int32_t parent) {
  const Attribute& a = code_.attribute(location);
  if (frames_left_ == 0) return parent;
  --frames_left_;
  if (a.kind == Kind::kCallSite) {
    const int32_t caller = Frame(a.items[1], parent);
    return Frame(a.items[0], caller);
  }
  if (a.kind == Kind::kFused) return a.items.empty() ? 0 : Frame(a.items[0], parent);
  absl::string_view function;
  const Attribute* file = &a;
  if (a.kind == Kind::kNamed) {
    function = code_.attribute(a.items[0]).text;
    file = &code_.attribute(a.items[1]);
    if (file->kind != Kind::kFileLine) return Frame(a.items[1], parent);
  }
  if (file->kind != Kind::kFileLine) return 0;
  StackTables& stack = module_.header.stack;
  const int32_t file_id = IdOf(code_.attribute(file->items[0]).text, &stack.files, &files_);
  const int32_t function_id = IdOf(function, &stack.functions, &functions_);
  const auto& n = file->numbers;
  const auto [place, new_place] =
      places_.try_emplace(std::make_tuple(file_id, function_id, n[0], n[1], n[2], n[3]),
                          static_cast<int32_t>(stack.locations.size()) + 1);
  if (new_place) {
    stack.locations.push_back({file_id, function_id, static_cast<int32_t>(n[0]),
                               static_cast<int32_t>(n[2]), static_cast<int32_t>(n[1]),
                               static_cast<int32_t>(n[3])});
  }
  const auto [frame, new_frame] = frames_.try_emplace(
      std::make_pair(place->second, parent), static_cast<int32_t>(stack.frames.size()) + 1);
  if (new_frame) stack.frames.push_back({place->second, parent});
  return frame->second;
}

const Metadata* Locations::Of(uint32_t location) {
  if (location == kNoLocation) return nullptr;
  if (location >= known_.size()) {
    known_.resize(location + 1);
    metadata_.resize(location + 1);
  }
  if (known_[location]) return metadata_[location];
  known_[location] = true;
  Metadata m;
  const Attribute* a = &code_.attribute(location);
  uint32_t place = location;
  if (a->kind == Kind::kFused && !a->items.empty()) {
    place = a->items[0];
    a = &code_.attribute(place);
  }
  if (a->kind == Kind::kNamed) {
    m.op_name = code_.attribute(a->items[0]).text;
    place = a->items[1];
  }
  frames_left_ = kMaxFrames;
  m.stack_frame_id = Frame(place, 0);
  if (m.op_name.empty() && m.stack_frame_id == 0) return nullptr;
  return metadata_[location] = InternMetadata(module_.context(), m);
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
