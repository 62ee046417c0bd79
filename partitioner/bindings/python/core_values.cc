// SPDX-License-Identifier: Apache-2.0
// Shapes and shardings, text and protobuf, as plain Python values. The package's Shape and
// HloSharding are made of these.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/python/core.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/hlo_sharding.h"
#include "shardcall/sharding/shape.h"

namespace nb = nanobind;

namespace shardcall {
inline namespace internal {
namespace python {
namespace {

using nb::literals::operator""_a;

template <typename Range>
nb::tuple Tuple(const Range& range) {
  nb::list out;
  for (const auto& x : range) out.append(x);
  return nb::tuple(out);
}

// (type, dims, which of them are dynamic, minor to major or None, [elements]).
nb::tuple Describe(const Shape* shape) {
  nb::list dynamic, elements;
  for (int d = 0; d < shape->rank(); ++d) dynamic.append(shape->IsDynamicDim(d));
  for (const Shape* element : shape->tuple()) elements.append(Describe(element));
  return nb::make_tuple(
      std::string(ElementTypeName(shape->element_type())), Tuple(shape->dims()), nb::tuple(dynamic),
      shape->has_layout() ? nb::object(Tuple(shape->minor_to_major())) : nb::object(nb::none()),
      nb::tuple(elements));
}

// Parses a shape's text as part of a program.
absl::StatusOr<Module> Parsed(const std::string& text) {
  if (text.find_first_of("=\n\"'/#%@") != std::string::npos || text.size() > 100000) {
    return ToStatus({.code = "E010",
                     .message = "this is no shape",
                     .found = text.substr(0, 60),
                     .fix = "Write f32[16,32], or (f32[2], s32[]) for a tuple"});
  }
  return ParseModule(std::make_shared<const std::string>(absl::StrCat(
                         "HloModule shape\nENTRY e {\n  ROOT p = ", text, " parameter(0)\n}\n")),
                     std::make_shared<Context>(), "<shape>");
}

const Shape* RootShape(const Module& module) {
  return module.instr(module.comp(module.entry()).root).shape;
}

// Converts a V3 (named) sharding to tiles, which Python code supports.
absl::StatusOr<HloSharding> Tiles(HloSharding sharding) {
  if (sharding.kind == HloSharding::Kind::kTuple) {
    for (HloSharding& element : sharding.tuple) {
      SHARDCALL_ASSIGN_OR_RETURN(element, Tiles(std::move(element)));
    }
    return sharding;
  }
  if (sharding.kind != HloSharding::Kind::kNamed) return sharding;
  Context context;
  MeshCollector collector;
  SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(sharding));
  SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes, collector.Finish(context));
  SHARDCALL_ASSIGN_OR_RETURN(
      const ShardingConstraint read,
      meshes.FromHlo(sharding, static_cast<int>(sharding.named.dims.size())));
  if (read.unknown) {
    HloSharding unknown;
    unknown.kind = HloSharding::Kind::kUnknown;
    return unknown;
  }
  return ToHloSharding(*ToSharding(context, read));  // open dims closed, as XLA does
}

constexpr const char* kKinds[] = {"replicated", "manual", "unreduced", "unknown",
                                  "maximal",    "tiled",  "named",     "tuple"};
constexpr const char* kSubgroups[] = {"manual", "unreduced", "replicated"};

// (text, kind, device, tile, [subgroup], devices as a list, reshape, perm, [elements]).
nb::tuple Describe(const HloSharding& s) {
  nb::list subgroups, elements;
  for (const HloSharding::Subgroup g : s.subgroups) {
    subgroups.append(kSubgroups[static_cast<int>(g)]);
  }
  for (const HloSharding& element : s.tuple) elements.append(Describe(element));
  return nb::make_tuple(s.Print(), kKinds[static_cast<int>(s.kind)], s.device, Tuple(s.tile),
                        nb::tuple(subgroups), Tuple(s.list), Tuple(s.reshape), Tuple(s.perm),
                        nb::tuple(elements));
}

}  // namespace

void DefineValues(nb::module_& m) {
  // name -> number, as in xla.PrimitiveType.
  m.def("element_types", [] {
    nb::dict out;
    for (int k = 0; k < kNumElementTypes; ++k) {
      out[nb::str(std::string(ElementTypeName(static_cast<ElementType>(k))).c_str())] = k;
    }
    return out;
  });
  m.def(
      "shape_of_text",
      [](const std::string& text) { return Describe(RootShape(Take(Parsed(text)))); }, "text"_a);
  m.def(
      "shape_of_proto",
      [](const nb::bytes& proto) {
        const auto context = std::make_shared<Context>();
        return Describe(Take(ReadShapeProto(ViewOf(proto), context, "a shape")));
      },
      "proto"_a);
  m.def(
      "shape_text",
      [](const nb::bytes& proto) {
        const auto context = std::make_shared<Context>();
        return Take(ReadShapeProto(ViewOf(proto), context, "a shape"))->ToString();
      },
      "proto"_a);
  m.def(
      "shape_proto",
      [](const std::string& text) {
        return ToBytes(WriteShapeProto(RootShape(Take(Parsed(text)))));
      },
      "text"_a);
  m.def(
      "sharding_of_text",
      [](const std::string& text) { return Describe(Take(Tiles(Take(ParseHloSharding(text))))); },
      "text"_a);
  m.def(
      "sharding_of_proto",
      [](const nb::bytes& proto) {
        return Describe(Take(Tiles(Take(ReadShardingProto(ViewOf(proto), "a sharding")))));
      },
      "proto"_a);
  m.def(
      "sharding_proto",
      [](const std::string& text) {
        return ToBytes(Take(WriteShardingProto(Take(ParseHloSharding(text)))));
      },
      "text"_a);
}

}  // namespace python
}  // namespace internal
}  // namespace shardcall
