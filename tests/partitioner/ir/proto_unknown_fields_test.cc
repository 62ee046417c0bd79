// SPDX-License-Identifier: Apache-2.0
// What a newer XLA may write is refused by name, wherever it can change what the program means.
#include <google/protobuf/descriptor.h>

#include <deque>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "proto_util.h"
#include "shardcall/partitioner/ir/proto/ignored_fields.h"

namespace shardcall {
namespace {

namespace pb = google::protobuf;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kSmall[] = R"(HloModule m

ENTRY main {
  a = f32[8] parameter(0)
  b = f32[8] add(a, a)
  c = pred[8] compare(a, b), direction=LT
  ROOT d = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
)";

std::string Named(const pb::Descriptor* type) { return std::string(type->name()); }

// Of every message of the schema the fields that lead to it from a snapshot.
std::map<const pb::Descriptor*, std::vector<const pb::FieldDescriptor*>> Paths() {
  std::map<const pb::Descriptor*, std::vector<const pb::FieldDescriptor*>> paths;
  const pb::Descriptor* root = hlo_pb::HloSnapshot::descriptor();
  paths[root] = {};
  std::deque<const pb::Descriptor*> next = {root};
  for (; !next.empty(); next.pop_front()) {
    for (int k = 0; k < next.front()->field_count(); ++k) {
      const pb::FieldDescriptor* f = next.front()->field(k);
      if (f->message_type() == nullptr || paths.contains(f->message_type())) continue;
      std::vector<const pb::FieldDescriptor*> path = paths[next.front()];
      path.push_back(f);
      paths[f->message_type()] = path;
      next.push_back(f->message_type());
    }
  }
  return paths;
}

// The message at the end of the path: of several the last one, which is made if there is none.
pb::Message* At(pb::Message* message, const std::vector<const pb::FieldDescriptor*>& path) {
  for (const pb::FieldDescriptor* f : path) {
    const pb::Reflection* r = message->GetReflection();
    if (!f->is_repeated()) {
      message = r->MutableMessage(message, f);
    } else if (const int n = r->FieldSize(*message, f); n > 0) {
      message = r->MutableRepeatedMessage(message, f, n - 1);
    } else {
      message = r->AddMessage(message, f);
    }
  }
  return message;
}

hlo_pb::HloSnapshot Snapshot() {
  hlo_pb::HloSnapshot p;
  *p.mutable_hlo()->mutable_hlo_module() = MessageOf(kSmall);
  return p;
}

bool IsIgnored(const std::string& message) {
  for (const hlo_proto::IgnoredField& row : hlo_proto::kIgnoredFields) {
    if (row.message == message && row.number == 0) return true;
  }
  return false;
}

TEST(ProtoUnknownFields, AnUnknownFieldOfAnyMessageIsAnErrorThatNamesIt) {
  const auto paths = Paths();
  const pb::FileDescriptor* schema = hlo_pb::HloSnapshot::descriptor()->file();
  EXPECT_EQ(static_cast<int>(paths.size()) + 1, schema->message_type_count());  // ChannelHandle
  int refused = 0;
  for (const auto& [type, path] : paths) {
    hlo_pb::HloSnapshot p = Snapshot();
    pb::Message* message = At(&p, path);
    message->GetReflection()->MutableUnknownFields(message)->AddLengthDelimited(3000, "later");
    const auto module = ReadBytes(p.SerializeAsString());
    if (IsIgnored(Named(type))) continue;
    ASSERT_FALSE(module.ok()) << Named(type);
    ++refused;
    EXPECT_THAT(std::string(module.status().message()),
                AllOf(StartsWith("E036"), HasSubstr("t.pb"), HasSubstr("Fix:"),
                      HasSubstr(absl::StrCat("field 3000 of ", Named(type), " (5 bytes)"))))
        << Named(type);
  }
  EXPECT_GT(refused, 50);
}

TEST(ProtoUnknownFields, ThePlaceIsTheInstructionAndTheFieldAroundIt) {
  const std::string error = ErrorAfter(kSmall, [](auto* p) {
    auto* layout = p->mutable_computations(0)->mutable_instructions(1)->mutable_shape();
    layout->GetReflection()->MutableUnknownFields(layout->mutable_layout())->AddVarint(99, 7);
  });
  EXPECT_THAT(error, AllOf(StartsWith("E036"), HasSubstr("instructions[1] (%b) shape.layout"),
                           HasSubstr("found field 99 of LayoutProto (7)")));
}

TEST(ProtoUnknownFields, WhatDoesNotChangeTheProgramIsKept) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  const auto unknown = [](pb::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(3000, 7);
  };
  auto* dot = p.mutable_computations(0)->mutable_instructions(3);
  unknown(dot->mutable_metadata());
  unknown(p.mutable_stack_frame_index());
  unknown(dot->mutable_original_value()->add_elements()->mutable_original_array());
  dot->GetReflection()->MutableUnknownFields(dot)->AddLengthDelimited(101, "");
  const std::string bytes = p.SerializeAsString();
  EXPECT_EQ(Again(bytes), bytes);
  // The same field with contents is refused.
  dot->GetReflection()->MutableUnknownFields(dot)->Clear();
  dot->GetReflection()->MutableUnknownFields(dot)->AddLengthDelimited(101, "\x0a\x02\x08\x02");
  EXPECT_THAT(TextOfBytes(p.SerializeAsString()),
              AllOf(StartsWith("E036"), HasSubstr("(%d)"),
                    HasSubstr("field 101 of HloInstructionProto (4 bytes)")));
}

TEST(ProtoUnknownFields, AFieldThatChangedItsTypeIsUnknown) {
  const std::string error = ErrorAfter(kSmall, [](auto* p) {
    auto* compare = p->mutable_computations(0)->mutable_instructions(2);
    compare->clear_comparison_order();
    compare->GetReflection()->MutableUnknownFields(compare)->AddVarint(102, 1);
  });
  EXPECT_THAT(error, AllOf(StartsWith("E036"), HasSubstr("(%c)"),
                           HasSubstr("field 102 of HloInstructionProto (1, another type than of "
                                     "comparison_order)")));
}

TEST(ProtoUnknownFields, TheyAreNamedBeforeErrorsThatFollowFromThem) {
  const std::string error = ErrorAfter(kSmall, [](auto* p) {
    auto* dot = p->mutable_computations(0)->mutable_instructions(3);
    dot->add_operand_ids(dot->operand_ids(0));  // a third operand, that the field speaks of
    dot->GetReflection()->MutableUnknownFields(dot)->AddLengthDelimited(104, "scale");
  });
  EXPECT_THAT(error, AllOf(StartsWith("E036"), HasSubstr("field 104 of HloInstructionProto")));
}

// Sets a field to a value that is not its default; a message with its fields, to some levels.
void SetSome(pb::Message* message, const pb::FieldDescriptor* f, int levels = 3) {
  const pb::Reflection* r = message->GetReflection();
  const bool list = f->is_repeated();
  switch (f->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return list ? r->AddInt32(message, f, 1) : r->SetInt32(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return list ? r->AddInt64(message, f, 1) : r->SetInt64(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_UINT32: return r->AddUInt32(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_UINT64: return r->AddUInt64(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return list ? r->AddFloat(message, f, 1) : r->SetFloat(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return list ? r->AddDouble(message, f, 1) : r->SetDouble(message, f, 1);
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return list ? r->AddBool(message, f, true) : r->SetBool(message, f, true);
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return list ? r->AddString(message, f, "x") : r->SetString(message, f, "x");
    case pb::FieldDescriptor::CPPTYPE_MESSAGE: {
      pb::Message* inner = list ? r->AddMessage(message, f) : r->MutableMessage(message, f);
      for (int k = 0; k < inner->GetDescriptor()->field_count(); ++k) {
        const pb::FieldDescriptor* g = inner->GetDescriptor()->field(k);
        if (g->message_type() == nullptr || levels > 1) SetSome(inner, g, levels - 1);
      }
      return;
    }
    default: FAIL() << f->name();
  }
}

// The schema has enumerations as numbers, so that unknown values are not lost.
TEST(ProtoUnknownFields, AnUnknownValueOfAnEnumerationIsAnError) {
  const auto error = [](const std::string& instruction, const char* path, const char* code) {
    const std::string text = InEntry("%a = f32[8]{0} parameter(0)\nROOT %x = " + instruction);
    const std::string found = ErrorAfter(text, [&](auto* p) {
      pb::Message* message =
          p->mutable_computations(p->computations_size() - 1)->mutable_instructions(1);
      const std::vector<std::string> names = absl::StrSplit(path, '.');
      for (size_t k = 0; k < names.size(); ++k) {
        const pb::FieldDescriptor* f = message->GetDescriptor()->FindFieldByName(names[k]);
        ASSERT_NE(f, nullptr) << path;
        if (k + 1 < names.size()) {
          message = At(message, {f});
        } else if (f->is_repeated()) {
          message->GetReflection()->AddInt32(message, f, 77);
        } else {
          message->GetReflection()->SetInt32(message, f, 77);
        }
      }
    });
    EXPECT_THAT(found, AllOf(StartsWith(code), HasSubstr("found 77"))) << path;
  };
  const char kDot[] = "f32[] dot(%a, %a), lhs_contracting_dims={0}, rhs_contracting_dims={0}";
  const char kCall[] = "f32[8]{0} custom-call(%a), custom_call_target=\"t\"";
  const char kNamed[] = "f32[8]{0} negate(%a), sharding={mesh['a'=2], [{'a'}]}";
  const char kTiles[] = "f32[8]{0} negate(%a), sharding={devices=[2]<=[2]}";
  error(kDot, "precision_config.algorithm", "E019");
  error(kDot, "precision_config.operand_precision", "E019");
  error(kCall, "custom_call_api_version", "E019");
  error(kCall, "custom_call_schedule", "E019");
  error(kCall, "padding_type", "E019");
  error("c64[8]{0} fft(%a), fft_type=FFT, fft_length={8}", "fft_type", "E019");
  error("f32[8]{0} rng(%a, %a), distribution=rng_uniform", "distribution", "E019");
  error("f32[8]{0} tanh(%a)", "result_accuracy.mode", "E019");
  error(kNamed, "sharding.named_sharding.reduction_op", "E016");
  error(kTiles, "sharding.type", "E016");
  error(kTiles, "sharding.shard_group_type", "E016");
  error(kTiles, "sharding.last_tile_dims", "E016");
  error(kTiles, "shape.element_type", "E010");
}

TEST(ProtoUnknownFields, AFieldOfAnotherOpIsAnErrorUnlessItMayBeDropped) {
  const std::string before = TextOfBytes(BytesOf(kSmall));
  std::set<std::string> kept;
  const pb::Descriptor* type = hlo_pb::HloInstructionProto::descriptor();
  for (int k = 0; k < type->field_count(); ++k) {
    const pb::FieldDescriptor* f = type->field(k);
    hlo_pb::HloModuleProto p = MessageOf(kSmall);
    SetSome(p.mutable_computations(0)->mutable_instructions(1), f);
    const auto module = ReadBytes(p.SerializeAsString());
    if (!module.ok() || PrintModule(*module) != before) continue;
    kept.insert(std::string(f->name()));
  }
  // Two of the table, and the id, which text does not show.
  EXPECT_THAT(kept, ::testing::UnorderedElementsAre("all_reduce_id", "id", "replica_groups"));
  EXPECT_THAT(ErrorAfter(kSmall,
                         [](auto* p) {
                           p->mutable_computations(0)
                               ->mutable_instructions(1)
                               ->mutable_sparsity_config()
                               ->mutable_lhs()
                               ->set_num_non_zero(2);
                         }),
              AllOf(StartsWith("E036 A field that is not one of add"), HasSubstr("(%b)"),
                    HasSubstr("sparsity_config"), HasSubstr("field 98")));
}

}  // namespace
}  // namespace shardcall
