// SPDX-License-Identifier: Apache-2.0
// Damaged and contradictory messages: whatever they hold, reading ends with a
// module, or with one diagnostic that names the place.
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "proto_util.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kSmall[] = R"(HloModule m

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT add = f32[] add(x, y)
}

ENTRY main {
  a = f32[8] parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={k="v"}
  zero = f32[] constant(0)
  r = f32[] reduce(a, zero), dimensions={0}, to_apply=sum
  ROOT b = f32[8] broadcast(r), dimensions={}
}
)";

hlo_pb::HloInstructionProto* At(hlo_pb::HloModuleProto* p, int computation, int instruction) {
  return p->mutable_computations(computation)->mutable_instructions(instruction);
}

// Everything that follows reading must hold out too.
void ExpectReadOrDiagnosed(const std::string& bytes) {
  const auto module = ReadBytes(bytes);
  if (!module.ok()) {
    EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << module.status().message();
    return;
  }
  const absl::Status verified = VerifyModule(*module, "t.pb");
  if (!verified.ok()) {
    EXPECT_FALSE(DiagnosticCode(verified).empty()) << verified.message();
    return;
  }
  const std::string text = PrintModule(*module);
  EXPECT_EQ(ErrorOf(text), "ok") << text;
  EXPECT_TRUE(WriteModuleProto(*module).ok());
}

TEST(ProtoBadInput, EveryPrefixIsReadOrDiagnosed) {
  const std::string bytes = BytesOf(kSmall);
  int refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto module = ReadBytes(bytes.substr(0, n));
    if (module.ok()) continue;
    ++refused;
    EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << n;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
  const std::string enclosed = BytesOf(kSmall, ProtoForm::kHlo);
  for (size_t n = 0; n < enclosed.size(); ++n) {
    EXPECT_FALSE(ReadBytes(enclosed.substr(0, n)).ok()) << n;
  }
}

TEST(ProtoBadInput, PrefixesOfTheSampleOfEveryOpcodeAreDiagnosed) {
  const std::string bytes = BytesOf(ReadFile(std::filesystem::path(SHARDCALL_SOURCE_DIR) /
                                             "tests/data/hlo_text/every_opcode.hlo"));
  for (size_t n = 0; n < bytes.size(); n += 41) {
    const auto module = ReadBytes(bytes.substr(0, n));
    if (!module.ok()) EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << n;
  }
}

TEST(ProtoBadInput, ChangedBytesAreReadOrDiagnosed) {
  const std::string small = BytesOf(kSmall);
  const std::string every = BytesOf(ReadFile(std::filesystem::path(SHARDCALL_SOURCE_DIR) /
                                             "tests/data/hlo_text/every_opcode.hlo"));
  // Each byte of the small one, in three ways.
  for (size_t at = 0; at < small.size(); ++at) {
    for (int flip : {0x01, 0x80, 0x7f}) {
      std::string changed = small;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      ExpectReadOrDiagnosed(changed);
    }
  }
  std::mt19937 random(3);
  for (int round = 0; round < 2500; ++round) {
    std::string changed = every;
    for (int k = 0; k < 1 + round % 4; ++k) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    ExpectReadOrDiagnosed(changed);
  }
}

TEST(ProtoBadInput, TheFaultyBytesAreNamed) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  std::string bytes = p.SerializeAsString();
  const std::string dims = p.computations(1).instructions(0).shape().layout().SerializeAsString();
  const size_t at = bytes.find(dims);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 0x7f;  // the length of minor_to_major
  const auto module = ReadBytes(bytes);
  ASSERT_FALSE(module.ok());
  EXPECT_THAT(std::string(module.status().message()),
              ::testing::AllOf(StartsWith("E030"), HasSubstr("t.pb"), HasSubstr("layout"),
                               HasSubstr("a length of 127 bytes"), HasSubstr("Fix:")));
}

TEST(ProtoBadInput, WhatIsNoMessageIsRefused) {
  EXPECT_THAT(std::string(ReadBytes("").status().message()), StartsWith("E030"));
  EXPECT_THAT(std::string(ReadBytes("HloModule m\n").status().message()), StartsWith("E030"));
  EXPECT_THAT(std::string(ReadBytes(std::string(1000, '\xff')).status().message()),
              StartsWith("E030"));
}

TEST(ProtoBadInput, IdsThatLeadNowhereAreDiagnosed) {
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->set_operand_ids(0, 99); }),
              ::testing::AllOf(StartsWith("E031 Unknown operand"), HasSubstr("(%r)"),
                               HasSubstr("found 99")));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->set_called_computation_ids(0, 99); }),
              StartsWith("E031 Unknown computation"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->add_control_predecessor_ids(99); }),
              StartsWith("E031 Unknown control predecessor"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { p->mutable_computations(1)->set_root_id(99); }),
              StartsWith("E031 The root is not there"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { p->set_entry_computation_id(99); }),
              StartsWith("E031 The entry computation is not there"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { p->mutable_computations(1)->set_id(0); }),
              StartsWith("E031 Two computations"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 1)->set_id(At(p, 1, 0)->id()); }),
              StartsWith("E031 Two instructions"));
  EXPECT_THAT(
      ErrorAfter(kSmall,
                 [](auto* p) {
                   At(p, 1, 2)->mutable_metadata()->mutable_metadata_payload()->set_index(3);
                 }),
      StartsWith("E031 There is no such payload"));
}

TEST(ProtoBadInput, CyclesAreFound) {
  EXPECT_THAT(
      ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->set_operand_ids(1, At(p, 1, 3)->id()); }),
      StartsWith("E032 Operands"));
  EXPECT_THAT(
      ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->set_operand_ids(0, At(p, 1, 2)->id()); }),
      StartsWith("E032 Operands"));
  EXPECT_THAT(
      ErrorAfter(kSmall,
                 [](auto* p) { At(p, 1, 0)->add_control_predecessor_ids(At(p, 1, 3)->id()); }),
      StartsWith("E032 Operands"));
  EXPECT_THAT(
      ErrorAfter(kSmall,
                 [](auto* p) { At(p, 0, 2)->add_called_computation_ids(p->computations(1).id()); }),
      StartsWith("E032 Computations"));
}

TEST(ProtoBadInput, SchedulesMustOrderTheInstructions) {
  std::string text = kSmall;
  text.insert(text.find("\n"), ", is_scheduled=true");
  const auto sequence = [](hlo_pb::HloModuleProto* p) {
    return p->mutable_schedule()->mutable_sequences(1)->mutable_value();
  };
  EXPECT_EQ(ErrorAfter(text, [](auto*) {}), "ok");
  EXPECT_THAT(ErrorAfter(text, [&](auto* p) { sequence(p)->set_instruction_ids(0, 99); }),
              StartsWith("E031 The schedule"));
  EXPECT_THAT(
      ErrorAfter(text, [&](auto* p) { sequence(p)->mutable_instruction_ids()->RemoveLast(); }),
      StartsWith("E031 The schedule"));
  EXPECT_THAT(
      ErrorAfter(text,
                 [&](auto* p) { sequence(p)->mutable_instruction_ids()->SwapElements(0, 3); }),
      StartsWith("E031 The schedule puts"));
}

TEST(ProtoBadInput, ValuesMustFitTheirShape) {
  const auto shape = [](hlo_pb::HloModuleProto* p) { return At(p, 1, 0)->mutable_shape(); };
  EXPECT_THAT(ErrorAfter(kSmall, [&](auto* p) { shape(p)->set_element_type(99); }),
              StartsWith("E010 Unknown element type"));
  EXPECT_THAT(ErrorAfter(kSmall, [&](auto* p) { shape(p)->set_dimensions(0, -3); }),
              StartsWith("E010 A dimension is negative"));
  EXPECT_THAT(ErrorAfter(kSmall, [&](auto* p) { shape(p)->add_is_dynamic_dimension(true); }),
              StartsWith("E010 is_dynamic_dimension"));
  EXPECT_THAT(
      ErrorAfter(kSmall, [&](auto* p) { shape(p)->mutable_layout()->set_minor_to_major(0, 1); }),
      StartsWith("E010 A layout"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 1)->mutable_literal()->clear_f32s(); }),
              ::testing::AllOf(StartsWith("E011"), HasSubstr("1 of f32[]"), HasSubstr("found 0")));
  // A shape alone must not make room for its values.
  EXPECT_THAT(ErrorAfter(kSmall,
                         [](auto* p) {
                           auto* s = At(p, 1, 1)->mutable_literal()->mutable_shape();
                           for (int k = 0; k < 4; ++k) s->add_dimensions(int64_t{1} << 31);
                           s->clear_layout();
                         }),
              StartsWith("E011"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 1)->clear_literal(); }),
              StartsWith("E011 A constant has no value"));
}

TEST(ProtoBadInput, AttributesMustBeThoseOfTheOp) {
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 3)->set_opcode("broadkast"); }),
              ::testing::AllOf(StartsWith("E004"), HasSubstr("did you mean 'broadcast'?")));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 3)->add_operand_ids(At(p, 1, 0)->id()); }),
              StartsWith("E012"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 2)->clear_called_computation_ids(); }),
              StartsWith("E019 Wrong number of called computations"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 0, 1)->set_parameter_number(0); }),
              StartsWith("E013 A parameter number stands twice"));
  EXPECT_THAT(
      ErrorAfter(kSmall, [](auto* p) { At(p, 0, 1)->set_parameter_number(int64_t{1} << 60); }),
      StartsWith("E013 A parameter number is out of range"));
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 0)->mutable_sharding()->set_type(17); }),
              StartsWith("E016 Unknown kind of sharding"));
  EXPECT_THAT(ErrorAfter(kSmall,
                         [](auto* p) {
                           At(p, 1, 0)->mutable_sharding()->set_tile_assignment_dimensions(0, 3);
                         }),
              StartsWith("E016 Invalid sharding"));
}

TEST(ProtoBadInput, TheOrderOfAComparisonMustBeOneThatFitsItsType) {
  const auto with = [](const char* element, const std::string& type, const std::string& order) {
    return ErrorAfter(InEntry(absl::StrCat("%a = ", element, "[8] parameter(0)\n",
                                           "ROOT %c = pred[8] compare(%a, %a), direction=LT")),
                      [&](auto* p) {
                        At(p, 0, 1)->set_comparison_type(type);
                        At(p, 0, 1)->set_comparison_order(order);
                      });
  };
  EXPECT_THAT(with("f32", "", "WEAK"),
              ::testing::AllOf(StartsWith("E019 Unknown value"), HasSubstr("comparison_order"),
                               HasSubstr("PARTIAL, TOTAL"), HasSubstr("'WEAK'")));
  EXPECT_THAT(with("f32", "FLOAT", "TOTAL"),
              ::testing::AllOf(StartsWith("E019 A comparison's type and order contradict"),
                               HasSubstr("(%c) comparison_order"), HasSubstr("expected PARTIAL")));
  EXPECT_THAT(with("bf16", "TOTALORDER", "PARTIAL"), StartsWith("E019 A comparison's type"));
  EXPECT_EQ(with("f32", "TOTALORDER", "TOTAL"), "ok");
  EXPECT_EQ(with("s32", "SIGNED", "PARTIAL"), "ok");  // the orders of integers are the same
}

TEST(ProtoBadInput, NumbersOfAttributesMustBeFinite) {
  EXPECT_THAT(
      ErrorAfter(kSmall,
                 [](auto* p) {
                   At(p, 1, 2)->mutable_result_accuracy()->mutable_tolerance()->set_rtol(-INFINITY);
                 }),
      StartsWith("E003 A number is out of range"));
  const auto with_statistic = [](const std::string& name, double value) {
    return ErrorAfter(kSmall, [&](auto* p) {
      hlo_pb::Statistic* s = At(p, 1, 2)->mutable_statistics_viz()->add_statistics();
      s->set_stat_name(name);
      s->set_stat_val(value);
    });
  };
  EXPECT_THAT(with_statistic("count", NAN), StartsWith("E003 A number is out of range"));
  EXPECT_THAT(with_statistic("visualizing_index", 1),
              StartsWith("E019 A statistic has no proper name"));
  EXPECT_EQ(with_statistic("count", 1), "ok");
}

TEST(ProtoBadInput, TextMustBeUtf8) {
  EXPECT_THAT(ErrorAfter(kSmall, [](auto* p) { At(p, 1, 0)->set_name("\xc3("); }),
              StartsWith("E033"));
  EXPECT_THAT(
      ErrorAfter(kSmall, [](auto* p) { At(p, 1, 0)->mutable_metadata()->set_op_name("\xff"); }),
      StartsWith("E033"));
  EXPECT_THAT(ErrorAfter(kSmall,
                         [](auto* p) {
                           At(p, 1, 0)->mutable_frontend_attributes()->mutable_map(0)->set_value(
                               "\xed\xa0\x80");
                         }),
              StartsWith("E033"));
}

TEST(ProtoBadInput, RecoveryModulesNestUpToALimit) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  const hlo_pb::HloModuleProto plain = p;
  const auto wrap = [&] {
    hlo_pb::HloModuleProto outer = plain;
    auto* e = outer.mutable_original_value_recovery_table()->add_entries();
    e->mutable_old_original_array()->set_instruction_name("a");
    e->mutable_new_original_array()->set_instruction_name("b");
    *e->mutable_recovery_module() = p;
    p = outer;
  };
  for (int k = 0; k < 3; ++k) wrap();
  EXPECT_TRUE(ReadBytes(p.SerializeAsString()).ok());
  for (int k = 0; k < 60; ++k) wrap();
  EXPECT_THAT(std::string(ReadBytes(p.SerializeAsString()).status().message()),
              StartsWith("E014 Recovery modules"));
}

TEST(ProtoBadInput, ShapesTooDeepForAMessageAreRefusedInWriting) {
  std::string text = "HloModule m\nENTRY e {\n  ROOT a = ";
  text += std::string(3000, '(') + "f32[8]" + std::string(3000, ')') + " parameter(0)\n}\n";
  const auto module = Parse(text);
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_THAT(std::string(WriteModuleProto(*module).status().message()),
              StartsWith("E034 A shape is nested too deeply"));
}

// As XLA's reader: 0 is kept, written and printed; what is no version is refused. That
// nothing runs such a call is the runtime's to say.
TEST(ProtoBadInput, AnUnspecifiedApiVersionIsKept) {
  const std::string text = InEntry("ROOT %a = f32[8]{0} custom-call(), custom_call_target=\"t\"");
  const auto with = [&](int version) {
    hlo_pb::HloModuleProto p = MessageOf(text);
    At(&p, 0, 0)->set_custom_call_api_version(version);
    return p.SerializeAsString();
  };
  const std::string zero = with(0);
  EXPECT_EQ(Again(zero), zero);
  EXPECT_THAT(TextOfBytes(zero), HasSubstr("api_version=API_VERSION_UNSPECIFIED"));
  EXPECT_EQ(BytesOf(TextOfBytes(zero)), zero);
  EXPECT_THAT(TextOfBytes(with(1)), testing::Not(HasSubstr("api_version")));
  for (int version : {5, 9, -1}) {
    EXPECT_THAT(TextOfBytes(with(version)), StartsWith("E019 Unknown version of the interface"));
  }
}

TEST(ProtoBadInput, DeepShapesAreReadUpToALimit) {
  const auto nested = [](int levels) {
    hlo_pb::HloModuleProto p = MessageOf(InEntry("ROOT %a = (f32[8]{0}) parameter(0)"));
    hlo_pb::ShapeProto* shape = At(&p, 0, 0)->mutable_shape();
    for (int k = 0; k < levels; ++k) {
      shape = shape->mutable_tuple_shapes(0);
      hlo_pb::ShapeProto inner = *shape;
      shape->Clear();
      shape->set_element_type(13);
      *shape->add_tuple_shapes() = inner;
    }
    const auto module = ReadBytes(p.SerializeAsString());
    return module.ok() ? std::string("ok") : std::string(module.status().message());
  };
  EXPECT_EQ(nested(200), "ok");
  EXPECT_EQ(nested(1500), "ok");
  EXPECT_THAT(nested(5000), StartsWith("E014"));
}

}  // namespace
}  // namespace shardcall
