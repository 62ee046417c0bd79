// SPDX-License-Identifier: Apache-2.0
// The host kernels of this project as handlers of XLA's typed FFI, for XLA to run:
// the other side of kernels/ffi/xla/typed_handler.cc. A frame does not name its target, so
// each target has a function of its own: slot k calls the k-th registered handler.
//
//   XlaRunsCount()      how many there are
//   XlaRunsTarget(k)    the name of target k
//   XlaRunsFunction(k)  its XLA_FFI_Handler
//
// And two kernels for targets of programs that have none, which serve both engines:
//   XlaRunsStir         typed: any operands, any results
//   XlaRunsStirUntyped  untyped: two operands and a result of XLA_RUNS_ELEMENTS floats
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/narrow_float.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

constexpr int kSlots = 192;

const std::vector<const HandlerEntry*>& Entries() {
  static const auto* const kEntries = [] {
    auto* registry = new HandlerRegistry;
    SHARDCALL_CHECK(RegisterBuiltinHandlers(*registry).ok());
    auto* list = new std::vector<const HandlerEntry*>;
    for (const HandlerEntry* e : registry->List()) {
      if (e->platform == "Host" && e->api_version == 4) list->push_back(e);
    }
    for (const HandlerEntry* e : TestHandlers().List()) {
      if (e->source == "test") list->push_back(e);
    }
    SHARDCALL_CHECK(list->size() <= kSlots);
    return list;
  }();
  return *kEntries;
}

// MLIR's name of a type of attributes.
std::string TypeText(ElementType type) {
  if (type == ElementType::kPred) return "i1";
  std::string name(ElementTypeName(type));
  if (IsFloat(type)) return name;
  return name[0] == 's' ? "i" + name.substr(1) : "ui" + name.substr(1);
}

std::string NumberText(ElementType type, const char* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, ElementTypeBytes(type));
  if (type == ElementType::kPred) return bits != 0 ? "true" : "false";
  if (IsFloat(type)) return absl::StrFormat("%.17e", FloatFromBits(type, bits));
  const int unused = 64 - 8 * static_cast<int>(ElementTypeBytes(type));
  const bool is_signed = ElementTypeName(type)[0] == 's';
  return is_signed ? absl::StrCat(static_cast<int64_t>(bits << unused) >> unused)
                   : absl::StrCat(bits);
}

// The dictionary as the text that attributes are parsed from. Nesting is XLA's to bound.
std::string AttributesText(const abi::Attrs& attrs) {
  std::string text = "{";
  for (int64_t k = 0; k < attrs.size; ++k) {
    absl::StrAppend(&text, k == 0 ? "" : ", ", "\"",
                    absl::string_view(attrs.names[k]->ptr, attrs.names[k]->len), "\" = ");
    switch (attrs.types[k]) {
      case abi::AttrType::kScalar: {
        const auto& s = *static_cast<const abi::Scalar*>(attrs.attrs[k]);
        const auto type = static_cast<ElementType>(s.dtype);
        absl::StrAppend(&text, NumberText(type, static_cast<const char*>(s.value)));
        if (type != ElementType::kPred) absl::StrAppend(&text, " : ", TypeText(type));
        break;
      }
      case abi::AttrType::kArray: {
        const auto& a = *static_cast<const abi::Array*>(attrs.attrs[k]);
        const auto type = static_cast<ElementType>(a.dtype);
        absl::StrAppend(&text, "array<", TypeText(type));
        for (size_t i = 0; i < a.size; ++i) {
          absl::StrAppend(
              &text, i == 0 ? ": " : ", ",
              NumberText(type, static_cast<const char*>(a.data) + i * ElementTypeBytes(type)));
        }
        text += ">";
        break;
      }
      case abi::AttrType::kString: {
        const auto& s = *static_cast<const abi::ByteSpan*>(attrs.attrs[k]);
        text += "\"";
        for (char c : absl::string_view(s.ptr, s.len)) {
          if (c == '"' || c == '\\') text += '\\';
          text += c;
        }
        text += "\"";
        break;
      }
      case abi::AttrType::kDictionary:
        text += AttributesText(*static_cast<const abi::Attrs*>(attrs.attrs[k]));
        break;
    }
  }
  return text + "}";
}

BufferView View(const void* at) {
  const auto& b = *static_cast<const abi::Buffer*>(at);
  return {static_cast<ElementType>(b.dtype), std::vector<int64_t>(b.dims, b.dims + b.rank), b.data};
}

absl::Status Call(const HandlerEntry& entry, const abi::CallFrame& frame) {
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes,
                             AttributeMapView::Parse(AttributesText(frame.attrs)));
  HandlerContext context;
  context.target = entry.target;
  context.instruction = "called by XLA";
  context.attributes = &attributes;
  context.tuple_result = frame.rets.size != 1;
  std::vector<BufferView> operands, results;
  for (int64_t k = 0; k < frame.args.size; ++k) operands.push_back(View(frame.args.args[k]));
  for (int64_t k = 0; k < frame.rets.size; ++k) results.push_back(View(frame.rets.rets[k]));
  return entry.host(context, operands, results);
}

bool AnswersMetadata(abi::CallFrame* frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == abi::ExtensionType::kMetadata) {
    auto* asked = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start);
    asked->metadata->api_version = {abi::kApiVersionSize, nullptr, abi::kMajorVersion,
                                    abi::kOldestMinorVersion};
    return true;
  }
  return false;
}

abi::Error* Handle(int slot, abi::CallFrame* frame) {
  if (AnswersMetadata(frame)) return nullptr;
  const absl::Status status = Call(*Entries()[slot], *frame);
  if (status.ok()) return nullptr;
  const std::string message(status.message());
  abi::ErrorCreateArgs error = {{sizeof(abi::ErrorCreateArgs), nullptr},
                                message.c_str(),
                                static_cast<abi::ErrorCode>(status.code())};
  return frame->api->error_create(&error);
}

// Element k of result r: r plus the sum of the operands' elements k, begun anew where
// an operand is shorter, modulo 8. All is read before anything is written, since
// results may be operands.
void Stir(const std::vector<BufferView>& operands, const std::vector<BufferView>& results) {
  std::vector<std::vector<double>> read;
  for (const BufferView& x : operands) {
    if (x.data == nullptr || !IsArrayType(x.type) || x.num_elements() == 0) continue;
    read.emplace_back(x.num_elements());
    if (IsComplex(x.type) || IsFloat(x.type)) {
      std::vector<std::complex<double>> parts(x.num_elements());
      LoadElements(x.type, x.data, x.num_elements(), parts.data());
      for (size_t k = 0; k < parts.size(); ++k) read.back()[k] = parts[k].real();
    } else {
      std::vector<uint64_t> bits(x.num_elements());
      LoadElements(x.type, x.data, x.num_elements(), bits.data());
      for (size_t k = 0; k < bits.size(); ++k) read.back()[k] = static_cast<double>(bits[k] % 8);
    }
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const BufferView& y = results[r];
    if (y.data == nullptr || !IsArrayType(y.type)) continue;
    std::vector<double> made(y.num_elements(), static_cast<double>(r));
    for (size_t k = 0; k < made.size(); ++k) {
      // A scalar is the same on every device, whatever shard it has.
      for (const std::vector<double>& x : read) made[k] += y.rank() == 0 ? 0 : x[k % x.size()];
      made[k] = std::fmod(std::abs(made[k]), 8);
    }
    if (IsComplex(y.type)) {
      const std::vector<std::complex<double>> parts(made.begin(), made.end());
      StoreElements(y.type, parts.data(), y.num_elements(), y.data);
    } else if (IsFloat(y.type)) {
      StoreElements(y.type, made.data(), y.num_elements(), y.data);
    } else if (y.type == ElementType::kPred) {
      for (size_t k = 0; k < made.size(); ++k) static_cast<bool*>(y.data)[k] = made[k] >= 4;
    } else {
      const std::vector<uint64_t> bits(made.begin(), made.end());
      StoreElements(y.type, bits.data(), y.num_elements(), y.data);
    }
  }
}

template <size_t kSlot>
abi::Error* Slot(abi::CallFrame* frame) {
  return Handle(static_cast<int>(kSlot), frame);
}

template <size_t... kNumbers>
std::array<abi::Handler*, sizeof...(kNumbers)> AllSlots(std::index_sequence<kNumbers...>) {
  return {&Slot<kNumbers>...};
}

}  // namespace

extern "C" int XlaRunsCount() { return static_cast<int>(Entries().size()); }
extern "C" const char* XlaRunsTarget(int k) { return Entries()[k]->target.c_str(); }
extern "C" const void* XlaRunsFunction(int k) {
  static const auto kFunctions = AllSlots(std::make_index_sequence<kSlots>());
  return reinterpret_cast<const void*>(kFunctions[k]);
}

extern "C" abi::Error* XlaRunsStir(abi::CallFrame* frame) {
  if (AnswersMetadata(frame)) return nullptr;
  std::vector<BufferView> operands, results;
  for (int64_t k = 0; k < frame->args.size; ++k) operands.push_back(View(frame->args.args[k]));
  for (int64_t k = 0; k < frame->rets.size; ++k) results.push_back(View(frame->rets.rets[k]));
  Stir(operands, results);
  return nullptr;
}

// Of all untyped ABIs: what follows the operands is not read. No version tells sizes.
extern "C" void XlaRunsStirUntyped(void* out, void** in) {
  const char* said = std::getenv("XLA_RUNS_ELEMENTS");
  const std::vector<int64_t> dims = {said == nullptr ? 0 : std::atoll(said)};
  Stir({{ElementType::kF32, dims, in[0]}, {ElementType::kF32, dims, in[1]}},
       {{ElementType::kF32, dims, out}});
}

}  // namespace shardcall
