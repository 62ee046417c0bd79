// SPDX-License-Identifier: Apache-2.0
// Nothing is lost between text, Module and messages, in either direction.
#include "proto_util.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"

namespace shardcall {
namespace {

const char kSmall[] = R"(HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add = f32[] add(%x, %y)
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %zero = f32[] constant(0)
  %r = f32[] reduce(%a, %zero), dimensions={0}, to_apply=%sum
  %b = f32[8]{0} broadcast(%r), dimensions={}
  ROOT %out = f32[8]{0} multiply(%a, %b)
}

)";

// What the sample of every opcode does not hold.
const char kOdd[] =
    R"(HloModule odd, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }, alias_passthrough_params=true, entry_computation_layout={(f32[8]{0:T(8,128)(2,1)L(4)E(4)S(1)SC(0:4,6)}, f32[<=8,4]{1,0}, b(f32[4]{0}), f32[8]{0:#(u32)*(u8)M(16)})->(f32[8]{0}, f32[8]{0})}, allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output={true}, replica_count=2, num_partitions=8

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}


ENTRY %e (a: f32[8], b: f32[<=8,4], c: b(f32[4]), d: f32[8]) -> (f32[8], f32[8]) {
  %d = f32[8]{0:#(u32)*(u8)M(16)} parameter(3)
  %a = f32[8]{0:T(8,128)(2,1)L(4)E(4)S(1)SC(0:4,6)} parameter(0), parameter_replication={true}, origin={{"x" {0}}}, metadata={op_type="t" op_name="n" source_file="a.py" source_line=1 source_end_line=2 source_column=3 source_end_column=4 profile_type={1,3} deduplicated_name="q" scheduling_name="s" stack_frame_id=2 metadata_payload="p1"}
  %b = f32[<=8,4]{1,0} parameter(1), sharding={replicated metadata={op_name="q"}}
  %c = b(f32[4]{0}) parameter(2)
  %ks1 = s1[3]{0} constant({-1, 0, -1})
  %ku1 = u1[2]{0} constant({1, 0})
  %ks2 = s2[4]{0} constant({-2, -1, 0, 1})
  %ku2 = u2[5]{0} constant({1, 2, 3, 0, 1})
  %ks4 = s4[3]{0} constant({-8, 2, 7})
  %ku4 = u4[2]{0} constant({15, 1})
  %f4 = f4e2m1fn[3]{0} constant({1, -6, 0.5})
  %f8 = (f8e3m4[1]{0}, f8e4m3[1]{0}, f8e4m3b11fnuz[1]{0}, f8e4m3fn[2]{0}, f8e4m3fnuz[1]{0}, /*index=5*/f8e5m2[2]{0}, f8e5m2fnuz[1]{0}, f8e8m0fnu[1]{0}) constant(( {1.5}, {-2}, {0.5}, {1, nan}, {3}, {inf, -nan(0x1)}, {4}, {0.25} ))
  %nested = (u8[2]{0}, (s64[1]{0}, pred[2]{0}), f32[0,2]{1,0}) constant(( {1, 2}, ( {-5}, {1, 0} ), {  } ))
  %z = c64[2]{0} constant({(1, -2), (nan, 0)})
  %zz = c128[1]{0} constant({(1e+300, -inf)})
  %n = f32[3]{0} constant({nan(0x12), -nan, -0.0})
  %half = (f16[1]{0}, bf16[1]{0}, u16[1]{0}, s16[1]{0}) constant(( {1.5}, {-2}, {65535}, {-3} ))
  %ks8 = s8[2]{0} constant({-128, 127})
  %big = u64[1]{0} constant({18446744073709551615})
  %left = f32[1000]{0} constant({...})
  %g0 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'a', 'b':(2)2, ?}], unreduced={'b':(1)2}}, origin={[synthetic_call]}
  %g1 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={mesh['a'=2,'b'=2], device_ids=(3,0,1,2), [{'a'}], replicated={'b'}}
  %g2 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={mesh['a'=8], manual}
  %g3 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={mesh['a'=8], replicated, metadata={{op_name="m"}}}
  %g4 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={maximal_mesh[device_id=3]}
  %g5 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}, statistics={visualizing_index=0,count=1.5,n=2.12345678901}
  %g6 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={devices=[2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}
  %g7 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={devices=[8]<=[8] shard_like 5}
  %g8 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={unreduced}
  %g9 = f32[8]{0} custom-call(%a), custom_call_target="t", sharding={unknown}
  %h0 = f32[8]{0} all-reduce(%a), replica_groups=mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'b':(1)2}, to_apply=%sum, backend_config="text with \303\244"
  %h1 = f32[8]{0} all-reduce(%a), channel_id=9223372036854775807, replica_groups=[4,4]<=[2,8]T(1,0), use_global_device_ids=true, to_apply=%sum
  %t = (f32[8]{0}, (f32[8]{0})) custom-call(%a), custom_call_target="t", output_to_operand_aliasing={{0}: (0, {}), {1,0}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI, sharding={{replicated}, {manual}}, frontend_attributes={k="a\"b",l={x = {1}}}, origin={({}, ({"b" {1}}))}, backend_config={"a":{"b":"}"}}
  %cc = f32[4,2]{1,0} custom-call(%c), window={size=2x1 pad=1_2x0_0 rhs_reversal=1x0}, dim_labels=b0?f_0?io->b0f, feature_group_count=3, padding_type=PADDING_VALID, custom_call_target="y"
  %cv = f32[4,2]{1,0} convolution(%cc, %cc), dim_labels=bf_io->bf, convolution_kind=dgrad, operand_precision={high,default}, algorithm=dot_bf16_bf16_f32_x9, sparsity_config={lhs={sparsity=1x4 dimension=1 stride=1} rhs={sparsity=2x4 dimension=0 stride=2}}
  %tk = (f32[4,1]{1,0}, s32[4,1]{1,0}) topk(%cv), k=1, largest=false, is_stable=false
  %cb = f32[8]{0} collective-broadcast(%a), replica_groups={{0,1},{2,3}}, has_dynamic_root=false
  %th = f32[8]{0} tanh(%a), control-predecessors={%t, %g0}, result_accuracy={tolerance={atol=0.1,rtol=1e-05,ulps=2}}
  ROOT %out = (f32[8]{0}, f32[8]{0}) tuple(%th, %h1)
}

)";

std::string OddText() {
  // The computation that its reductions apply.
  std::string text = kOdd;
  text.insert(text.find("ENTRY"),
              "%sum (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
              "  %y = f32[] parameter(1)\n  ROOT %add = f32[] add(%x, %y)\n}\n\n");
  return text;
}

std::vector<std::filesystem::path> SampleFiles() {
  const std::filesystem::path data = std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data";
  std::vector<std::filesystem::path> files = HloFiles(data / "hlo");
  for (const char* folder : {"hlo_jax_0_12", "hlo_text", "hlo_proto"}) {
    for (const auto& file : HloFiles(data / folder)) files.push_back(file);
  }
  return files;
}

TEST(ProtoRoundTrip, TextComesBackFromTheMessage) {
  const auto files = SampleFiles();
  ASSERT_GT(files.size(), 50u);
  for (const auto& file : files) {
    const auto module = Parse(ReadFile(file));
    ASSERT_TRUE(module.ok()) << module.status().message();
    const std::string text = PrintModule(*module);
    EXPECT_TRUE(TextOfBytes(BytesOf(text)) == text) << file;
  }
}

TEST(ProtoRoundTrip, EveryAttributeTypeAndHeaderFieldComesBack) {
  const std::string text = OddText();
  const auto module = Parse(text);
  ASSERT_TRUE(module.ok()) << module.status().message();
  ASSERT_EQ(PrintModule(*module), text);
  EXPECT_EQ(TextOfBytes(BytesOf(text)), text);
}

TEST(ProtoRoundTrip, MessagesComeBackByteForByte) {
  for (const auto& file : SampleFiles()) {
    const std::string bytes = BytesOf(ReadFile(file));
    EXPECT_TRUE(Again(bytes) == bytes) << file;
    // And without having been kept beside the module.
    const auto module = ReadBytes(bytes);
    ASSERT_TRUE(module.ok());
    const ProtoSource& source = *module->proto_source();
    EXPECT_TRUE(source.module.empty() && source.computations.empty() && source.instructions.empty())
        << file;
  }
  const std::string bytes = BytesOf(OddText());
  EXPECT_TRUE(Again(bytes) == bytes);
}

TEST(ProtoRoundTrip, KnownFieldsWithoutAPlaceInTheModuleAreKept) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  p.set_id(123);
  p.set_is_dynamic(true);
  p.set_device_type("GPU");
  p.add_profile_info("\x08\x01");
  p.mutable_spmd_output_sharding()->set_type(4);
  auto* i = p.mutable_computations(1)->mutable_instructions(4);
  i->mutable_metadata()->set_size_of_generated_code_in_bytes(77);
  i->set_all_reduce_id(5);
  i->mutable_shape()->mutable_layout()->add_dim_level_types(1);
  i->clear_frontend_attributes();  // absent where it is usually there
  const std::string bytes = p.SerializeAsString();
  EXPECT_EQ(TextOfBytes(bytes), kSmall);
  EXPECT_TRUE(Again(bytes) == bytes);
}

TEST(ProtoRoundTrip, WhatAPassChangedWinsOverWhatWasRead) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  auto* i = p.mutable_computations(1)->mutable_instructions(4);
  i->mutable_sharding()->set_type(0);
  i->mutable_sharding()->add_metadata()->set_size_of_generated_code_in_bytes(77);
  auto module = ReadBytes(p.SerializeAsString());
  ASSERT_TRUE(module.ok()) << module.status().message();
  const InstrId root = module->comp(module->entry()).root;
  HloSharding manual;
  manual.kind = HloSharding::Kind::kManual;
  module->mutable_instr(root).sharding = InternHloSharding(module->context(), manual);
  const auto bytes = WriteModuleProto(*module);
  ASSERT_TRUE(bytes.ok());
  hlo_pb::HloModuleProto out;
  ASSERT_TRUE(out.ParseFromString(*bytes));
  EXPECT_EQ(out.computations(1).instructions(4).sharding().type(), 4);
}

TEST(ProtoRoundTrip, IdsAreKeptAndUsed) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  const int64_t far = int64_t{1} << 40;
  for (auto& c : *p.mutable_computations()) {
    c.set_id(c.id() + far);
    c.set_root_id(c.root_id() * 3 + far);
    for (auto& i : *c.mutable_instructions()) {
      i.set_id(i.id() * 3 + far);
      for (int64_t& id : *i.mutable_operand_ids()) id = id * 3 + far;
      for (int64_t& id : *i.mutable_called_computation_ids()) id += far;
    }
  }
  p.set_entry_computation_id(p.entry_computation_id() + far);
  const std::string bytes = p.SerializeAsString();
  EXPECT_EQ(TextOfBytes(bytes), kSmall);
  EXPECT_TRUE(Again(bytes) == bytes);
}

TEST(ProtoRoundTrip, ComputationsAndInstructionsMayStandInAnyOrder) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  p.mutable_computations()->SwapElements(0, 1);
  p.mutable_computations(0)->mutable_instructions()->SwapElements(0, 4);
  p.mutable_computations(0)->mutable_instructions()->SwapElements(1, 2);
  const std::string bytes = p.SerializeAsString();
  const auto module = ReadBytes(bytes);
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_TRUE(VerifyModule(*module, "t.pb").ok());
  EXPECT_TRUE(Again(bytes) == bytes);
}

TEST(ProtoRoundTrip, PackedAndSingleNumbersReadAlike) {
  // operand_ids (36) of the root, once per number instead of packed.
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  auto* i = p.mutable_computations(1)->mutable_instructions(4);
  const std::vector<int64_t> ids(i->operand_ids().begin(), i->operand_ids().end());
  i->clear_operand_ids();
  auto* fields = i->GetReflection()->MutableUnknownFields(i);
  for (int64_t id : ids) fields->AddVarint(36, static_cast<uint64_t>(id));
  EXPECT_EQ(TextOfBytes(p.SerializeAsString()), kSmall);
  EXPECT_TRUE(Again(p.SerializeAsString()) == BytesOf(kSmall));
}

TEST(ProtoRoundTrip, OldFieldsOfDeviceListsAreRead) {
  const std::string text = InEntry(
      "%a = f32[8]{0} parameter(0)\n"
      "ROOT %g = f32[32]{0} all-gather(%a), channel_id=3, replica_groups={{0,1,2,3}}, "
      "dimensions={0}");
  hlo_pb::HloModuleProto p = MessageOf(text);
  auto* i = p.mutable_computations(0)->mutable_instructions(1);
  *i->mutable_replica_groups() = i->collective_device_list().replica_groups();
  i->clear_collective_device_list();
  i->set_all_reduce_id(i->channel_id());
  i->clear_channel_id();
  const std::string bytes = p.SerializeAsString();
  EXPECT_EQ(TextOfBytes(bytes), PrintModule(*Parse(text)));
  EXPECT_TRUE(Again(bytes) == bytes);
}

// XLA writes comparison_order alone since jaxlib 0.12, and comparison_type alone before that.
TEST(ProtoRoundTrip, AComparisonIsReadByItsTypeOrItsOrderAndWrittenWithBoth) {
  struct Case {
    const char *element, *type, *order, *text;
  };
  for (const Case& c : {Case{"f32", "FLOAT", "PARTIAL", ""},
                        Case{"f32", "TOTALORDER", "TOTAL", ", type=TOTALORDER"},
                        Case{"c64", "FLOAT", "PARTIAL", ""}, Case{"s32", "SIGNED", "TOTAL", ""},
                        Case{"pred", "UNSIGNED", "TOTAL", ""}}) {
    const std::string text =
        InEntry(absl::StrCat("%a = ", c.element, "[8]{0} parameter(0)\n",
                             "ROOT %c = pred[8]{0} compare(%a, %a), direction=EQ", c.text));
    const std::string bytes = BytesOf(text);
    hlo_pb::HloModuleProto p = MessageOf(text);
    const std::string printed = PrintModule(*Parse(text));
    auto* i = p.mutable_computations(0)->mutable_instructions(1);
    EXPECT_EQ(i->comparison_type(), c.type);
    EXPECT_EQ(i->comparison_order(), c.order);
    i->clear_comparison_type();
    EXPECT_EQ(TextOfBytes(p.SerializeAsString()), printed);
    EXPECT_EQ(Again(p.SerializeAsString()), bytes);
    i->set_comparison_type(c.type);
    i->clear_comparison_order();
    EXPECT_EQ(TextOfBytes(p.SerializeAsString()), printed);
    EXPECT_EQ(Again(p.SerializeAsString()), bytes);
  }
}

// Since jaxlib 0.12, top-k is stable only if the message says so; older versions do not say it.
TEST(ProtoRoundTrip, TopKIsWrittenAsStableUnlessItIsNot) {
  const auto text = [](const char* stable) {
    return InEntry(absl::StrCat("%a = f32[8]{0} parameter(0)\nROOT %t = (f32[2]{0}, s32[2]{0}) ",
                                "topk(%a), k=2, largest=true", stable));
  };
  hlo_pb::HloModuleProto p = MessageOf(text(""));
  auto* top = p.mutable_computations(0)->mutable_instructions(1);
  EXPECT_TRUE(top->is_stable());
  const std::string printed = PrintModule(*Parse(text("")));
  EXPECT_EQ(TextOfBytes(p.SerializeAsString()), printed);
  top->set_is_stable(false);
  EXPECT_EQ(TextOfBytes(p.SerializeAsString()), printed);
  EXPECT_FALSE(MessageOf(text(", is_stable=false")).computations(0).instructions(1).is_stable());
}

TEST(ProtoRoundTrip, EnclosingMessagesAreToldByTheirContentAndKept) {
  hlo_pb::HloSnapshot snapshot;
  ASSERT_TRUE(snapshot.mutable_hlo()->mutable_hlo_module()->ParseFromString(BytesOf(kSmall)));
  snapshot.mutable_hlo()->set_buffer_assignment("\x0a\x02\x08\x01");
  snapshot.add_arguments()->add_f32s(1.5);
  snapshot.set_execution_platform("CPU");
  const std::string hlo = snapshot.hlo().SerializeAsString();
  const std::string whole = snapshot.SerializeAsString();
  EXPECT_EQ(TextOfBytes(hlo), kSmall);
  EXPECT_EQ(TextOfBytes(whole), kSmall);
  EXPECT_EQ(ProtoFormOf(*ReadBytes(BytesOf(kSmall))), ProtoForm::kModule);
  EXPECT_EQ(ProtoFormOf(*ReadBytes(hlo)), ProtoForm::kHlo);
  EXPECT_EQ(ProtoFormOf(*ReadBytes(whole)), ProtoForm::kSnapshot);
  EXPECT_TRUE(Again(hlo, ProtoForm::kHlo) == hlo);
  EXPECT_TRUE(Again(whole, ProtoForm::kSnapshot) == whole);
  EXPECT_TRUE(Again(whole, ProtoForm::kModule) == BytesOf(kSmall));
  EXPECT_EQ(TextOfBytes(BytesOf(kSmall, ProtoForm::kHlo)), kSmall);
}

TEST(ProtoRoundTrip, TextAndMessagesAreToldApart) {
  for (const auto& file : SampleFiles()) {
    const std::string text = ReadFile(file);
    EXPECT_FALSE(LooksLikeProto(text)) << file;
    EXPECT_TRUE(LooksLikeProto(BytesOf(text))) << file;
  }
  EXPECT_FALSE(LooksLikeProto("\n\t// a comment\r\nHloModule m"));
}

TEST(ProtoRoundTrip, NamesThatTextCannotHoldAreMendedInTheTextOnly) {
  hlo_pb::HloModuleProto p = MessageOf(kSmall);
  auto* c = p.mutable_computations(1);
  c->mutable_instructions(1)->set_name("a b/c");
  c->mutable_instructions(2)->set_name("a");  // twice
  c->mutable_instructions(3)->set_name("");
  c->mutable_instructions(4)->set_name("s32");
  const std::string bytes = p.SerializeAsString();
  const std::string text = TextOfBytes(bytes);
  EXPECT_NE(text.find("%a_b_c = f32[] constant(0)"), std::string::npos) << text;
  EXPECT_NE(text.find("%s32_ = "), std::string::npos) << text;
  EXPECT_NE(text.find("%a.1 = f32[] reduce(%a, %a_b_c)"), std::string::npos) << text;
  EXPECT_EQ(ErrorOf(text), "ok");
  EXPECT_TRUE(Again(bytes) == bytes);
}

TEST(ProtoRoundTrip, ModulesMadeHereHaveNamesAndIdsInTheMessage) {
  Module m(std::make_shared<Context>());
  const CompId entry = m.AddComputation("");
  const Shape* f32 = m.context().MakeArray(ElementType::kF32, {4});
  ParameterAttrs number;
  const InstrId p =
      m.Add(entry, Opcode::kParameter, f32, {}, InternAttributes(m.context(), number));
  const InstrId negated = m.Add(entry, Opcode::kNegate, f32, {p});
  m.SetRoot(entry, m.Add(entry, Opcode::kNegate, f32, {negated}));
  m.set_entry(entry);
  m.header.name = "made";
  const auto bytes = WriteModuleProto(m);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(TextOfBytes(*bytes), PrintModule(m));
}

TEST(ProtoRoundTrip, RecoveryTablesAreMessagesOfTheirOwn) {
  const std::string text =
      R"(HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, origin_recovery_table={
  {"x" {0}} : {"y" {1}}, "\n    HloModule r, entry_computation_layout={(f32[8]{0})->f32[8]{0}}\n\n    ENTRY %e (p: f32[8]) -> f32[8] {\n      %p = f32[8]{0} parameter(0)\n      ROOT %n = f32[8]{0} negate(%p)\n    }\n\n\n  "
  {"z"} : {"w"}
}


ENTRY %e (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8]{0} parameter(0)
}

)";
  const hlo_pb::HloModuleProto p = MessageOf(text);
  const auto& table = p.original_value_recovery_table();
  ASSERT_EQ(table.entries_size(), 2);
  EXPECT_EQ(table.entries(0).recovery_module().computations(0).instructions(1).opcode(), "negate");
  EXPECT_EQ(TextOfBytes(p.SerializeAsString()), text);
}

TEST(ProtoRoundTrip, TextWithoutABinaryFormIsRefused) {
  const auto module =
      Parse(InEntry("ROOT %a = f32[8]{0} parameter(0), metadata={op_name=\"\\377\"}"));
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto bytes = WriteModuleProto(*module);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().message().substr(0, 4), "E034") << bytes.status().message();
  EXPECT_NE(bytes.status().message().find("op_name"), absl::string_view::npos);
}

}  // namespace
}  // namespace shardcall
