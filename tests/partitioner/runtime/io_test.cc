// SPDX-License-Identifier: Apache-2.0
// Sharding of inputs, gathering of outputs, npz files.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/runtime/io/npy.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

class ShardIo : public testing::Test {
 protected:
  ShardIo() : mesh_(InternBaseMesh(context_, {2, 2}, DeviceOrder::Identity(4))) {}

  const LocalState* State(ShardingBuilder builder, const Tensor& global) {
    return CanonicalState(context_, builder.Intern(context_),
                          context_.MakeArray(global.type(), global.dims()));
  }

  Context context_;
  BaseMesh* mesh_;
};

TEST_F(ShardIo, UnevenTilesArePaddedWithPoison) {
  ShardingBuilder b(mesh_, 1);
  b.dims[0] = {mesh_->FullAxis(0), mesh_->FullAxis(1)};
  const Tensor global = F32({5}, {1, 2, 3, 4, 5});  // tiles of 2: 2, 2, 1, 0
  const LocalState* state = State(b, global);
  const auto third = ShardForDevice(global, *state, 2, PadFill::kPoison);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->data<float>()[0], 5);
  EXPECT_TRUE(std::isnan(third->data<float>()[1]));
  const auto last = ShardForDevice(global, *state, 3, PadFill::kZero);
  EXPECT_THAT(Numbers(*last), ElementsAre(0, 0));
}

TEST_F(ShardIo, EveryShardingComesBackWhole) {
  std::vector<float> x(7 * 6);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Tensor global = F32({7, 6}, x);
  const AxisRef a = mesh_->FullAxis(0), b = mesh_->FullAxis(1);
  for (const auto& dims : std::vector<std::pair<AxisList, AxisList>>{
           {{}, {}}, {{a}, {}}, {{}, {b, a}}, {{a}, {b}}, {{b}, {a}}, {{a, b}, {}}}) {
    ShardingBuilder builder(mesh_, 2);
    builder.dims[0] = dims.first;
    builder.dims[1] = dims.second;
    const LocalState* state = State(builder, global);
    const auto parts = ShardForDevices({global}, {state}, 4, PadFill::kPoison);
    ASSERT_TRUE(parts.ok()) << parts.status();
    std::vector<Tensor> locals;
    for (const auto& p : *parts) locals.push_back(p[0]);
    const auto whole = Unshard(locals, *state, global.dims(), {.check_replicas = true});
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_TRUE(BitwiseEqual(*whole, global)) << state->sharding->ToString();
  }
}

TEST_F(ShardIo, StatesOfOtherMeshesHaveTheSamePartsWhereTheDevicesHoldTheSame) {
  Context other;
  BaseMesh* const line = InternBaseMesh(other, {4}, DeviceOrder::Identity(4));
  BaseMesh* const swapped = InternBaseMesh(other, {4}, *DeviceOrder::List({0, 2, 1, 3}));
  const Dims dims{5, 8};
  const auto state_on = [&](Context& context, BaseMesh* mesh, AxisList rows, AxisList columns) {
    ShardingBuilder builder(mesh, 2);
    builder.dims[0] = std::move(rows);
    builder.dims[1] = std::move(columns);
    return CanonicalState(context, builder.Intern(context),
                          context.MakeArray(ElementType::kF32, dims));
  };
  const AxisRef a = mesh_->FullAxis(0), b = mesh_->FullAxis(1);
  const auto same = [&](const LocalState* x, const LocalState* y) {
    EXPECT_EQ(SameParts(*x, *y, dims, 4), SameParts(*y, *x, dims, 4));
    return SameParts(*x, *y, dims, 4);
  };
  const LocalState* const rows = state_on(context_, mesh_, {a, b}, {});
  EXPECT_TRUE(same(rows, rows));
  EXPECT_TRUE(same(rows, state_on(other, line, {line->FullAxis(0)}, {})));
  EXPECT_FALSE(same(rows, state_on(context_, mesh_, {b, a}, {})));
  EXPECT_FALSE(same(rows, state_on(other, swapped, {swapped->FullAxis(0)}, {})));
  EXPECT_TRUE(same(state_on(context_, mesh_, {b, a}, {}),
                   state_on(other, swapped, {swapped->FullAxis(0)}, {})));
  EXPECT_FALSE(same(rows, state_on(context_, mesh_, {a}, {b})));
  EXPECT_FALSE(same(rows, state_on(context_, mesh_, {}, {a, b})));
  EXPECT_FALSE(same(rows, state_on(context_, mesh_, {}, {})));
  EXPECT_TRUE(same(state_on(context_, mesh_, {}, {}), state_on(other, line, {}, {})));
  // Tiles with more padding, and sums that are still to be made, are other parts.
  const DimState larger[] = {{.tile = 2}, {.tile = 9}};
  EXPECT_FALSE(same(rows, InternLocalState(context_, rows->sharding, larger)));
  ShardingBuilder partial(mesh_, 2);
  partial.partial = {a};
  const LocalState* const sums = CanonicalState(context_, partial.Intern(context_),
                                                context_.MakeArray(ElementType::kF32, dims));
  EXPECT_FALSE(same(sums, sums));
  // Other devices than the program's.
  EXPECT_FALSE(SameParts(*rows, *rows, dims, 8));
  EXPECT_FALSE(SameParts(*rows, *rows, {5}, 4));
}

TEST_F(ShardIo, ReplicasThatDifferAreFound) {
  ShardingBuilder b(mesh_, 1);
  b.dims[0] = {mesh_->FullAxis(0)};
  const Tensor global = S32({2}, {1, 2});
  const LocalState* state = State(b, global);
  const std::vector<Tensor> locals = {S32({1}, {1}), S32({1}, {9}), S32({1}, {2}), S32({1}, {2})};
  EXPECT_EQ(
      DiagnosticCode(Unshard(locals, *state, global.dims(), {.check_replicas = true}).status()),
      "E321");
  EXPECT_THAT(Numbers(*Unshard(locals, *state, global.dims())), ElementsAre(1, 2));
}

TEST_F(ShardIo, PartialValuesAreSplitAndSummedInGroupOrder) {
  ShardingBuilder b(mesh_, 1);
  b.dims[0] = {mesh_->FullAxis(0)};
  b.partial = {mesh_->FullAxis(1)};
  const Tensor global = S32({4}, {1, 2, 3, 4});
  const LocalState* state = State(b, global);
  const auto parts = ShardForDevices({global}, {state}, 4, PadFill::kPoison);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_THAT(Numbers((*parts)[0][0]), ElementsAre(1, 2));
  EXPECT_THAT(Numbers((*parts)[1][0]), ElementsAre(0, 0));
  const std::vector<Tensor> locals = {S32({2}, {1, 2}), S32({2}, {10, 20}), S32({2}, {3, 4}),
                                      S32({2}, {30, 40})};
  EXPECT_THAT(Numbers(*Unshard(locals, *state, global.dims())), ElementsAre(11, 22, 33, 44));
}

TEST_F(ShardIo, CountsAndDevicesThatDoNotFitAreRefused) {
  const Tensor global = S32({4}, {1, 2, 3, 4});
  const LocalState* state = State(ShardingBuilder(mesh_, 1), global);
  EXPECT_EQ(DiagnosticCode(ShardForDevices({global}, {}, 4, PadFill::kZero).status()), "E313");
  EXPECT_EQ(DiagnosticCode(ShardForDevices({}, {state}, 4, PadFill::kZero).status()), "E313");
  for (const int64_t devices : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(DiagnosticCode(ShardForDevices({global}, {state}, devices, PadFill::kZero).status()),
              "E313");
  }
  for (const int64_t device : {int64_t{-1}, int64_t{4}, INT64_MAX}) {
    EXPECT_EQ(DiagnosticCode(ShardForDevice(global, *state, device, PadFill::kZero).status()),
              "E320");
  }
  EXPECT_EQ(DiagnosticCode(Unshard({}, *state, global.dims()).status()), "E313");
}

TEST_F(ShardIo, AMaximalShardingLeavesTheOthersPoisoned) {
  ShardingBuilder b(mesh_, 1);
  b.maximal_device = 2;
  const Tensor global = S32({2}, {1, 2});
  const LocalState* state = InternLocalState(context_, b.Intern(context_), {});
  const auto parts = ShardForDevices({global}, {state}, 4, PadFill::kPoison);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_THAT(Numbers((*parts)[2][0]), ElementsAre(1, 2));
  EXPECT_THAT(Numbers((*parts)[0][0]), ElementsAre(0x5a5a5a5a, 0x5a5a5a5a));
  std::vector<Tensor> locals;
  for (const auto& p : *parts) locals.push_back(p[0]);
  EXPECT_THAT(Numbers(*Unshard(locals, *state, global.dims())), ElementsAre(1, 2));
}

class Npz : public testing::Test {
 protected:
  Npz() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              absl::StrCat("npz_test_", std::random_device{}());
    std::filesystem::create_directories(folder_);
  }
  ~Npz() override { std::filesystem::remove_all(folder_); }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(Npz, EveryTypeComesBackBitByBit) {
  std::vector<LeafShape> shapes;
  for (int i = 1; i < kNumElementTypes; ++i) {
    const ElementType type = static_cast<ElementType>(i);
    if (IsArrayType(type)) shapes.push_back({type, {2, 3}, {}});
  }
  shapes.push_back({ElementType::kF32, {}, {}});
  shapes.push_back({ElementType::kS64, {0, 4}, {}});
  const std::vector<Tensor> tensors = RandomInputs(shapes, 7);
  ASSERT_TRUE(WriteNpz(File("a.npz"), "arg", tensors).ok());
  const auto back = ReadNpz(File("a.npz"), "arg", shapes);
  ASSERT_TRUE(back.ok()) << back.status();
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(BitwiseEqual((*back)[i], tensors[i])) << TypeAndDims(tensors[i]);
  }
}

TEST_F(Npz, EqualTensorsGiveEqualBytes) {
  const std::vector<Tensor> tensors = {F32({2}, {1, 2})};
  ASSERT_TRUE(WriteNpz(File("a.npz"), "out", tensors).ok());
  ASSERT_TRUE(WriteNpz(File("b.npz"), "out", tensors).ok());
  std::ifstream a(File("a.npz")), b(File("b.npz"));
  const std::string x((std::istreambuf_iterator<char>(a)), {}),
      y((std::istreambuf_iterator<char>(b)), {});
  EXPECT_EQ(x, y);
}

TEST_F(Npz, Float32StandsForANarrowFloatIfEveryValueIsExact) {
  ASSERT_TRUE(WriteNpz(File("a.npz"), "arg", {F32({2}, {1, 256})}).ok());
  const auto ok = ReadNpz(File("a.npz"), "arg", {{{ElementType::kBF16, {2}, {}}}});
  ASSERT_TRUE(ok.ok()) << ok.status();
  EXPECT_THAT(Numbers((*ok)[0]), ElementsAre(1, 256));
  ASSERT_TRUE(WriteNpz(File("b.npz"), "arg", {F32({2}, {1, 257})}).ok());
  EXPECT_EQ(
      DiagnosticCode(ReadNpz(File("b.npz"), "arg", {{{ElementType::kBF16, {2}, {}}}}).status()),
      "E206");
}

TEST_F(Npz, BytesStandForANarrowIntegerThatHasThem) {
  const auto read = [&](std::vector<int8_t> values) {
    EXPECT_TRUE(
        WriteNpz(File("a.npz"), "arg", {Tensor::From<int8_t>(ElementType::kS8, {2}, values)}).ok());
    return std::string(
        DiagnosticCode(ReadNpz(File("a.npz"), "arg", {{{ElementType::kS4, {2}, {}}}}).status()));
  };
  EXPECT_EQ(read({-8, 7}), "");
  EXPECT_EQ(read({7, 8}), "E206");
  EXPECT_EQ(read({-9, 0}), "E206");
}

TEST_F(Npz, WrongNamesShapesAndTypesAreTold) {
  ASSERT_TRUE(WriteNpz(File("a.npz"), "arg", {F32({2}, {1, 2}), F32({2}, {3, 4})}).ok());
  auto code = [&](const std::string& file, const std::vector<LeafShape>& shapes) {
    const absl::Status status = ReadNpz(file, "arg", shapes).status();
    return std::string(DiagnosticCode(status));
  };
  const LeafShape f2{ElementType::kF32, {2}, {}}, f3{ElementType::kF32, {3}, {}},
      s2{ElementType::kS32, {2}, {}};
  EXPECT_EQ(code(File("a.npz"), {f2, f2}), "");
  EXPECT_EQ(code(File("a.npz"), {f2, f2, f2}), "E203");  // one is missing
  EXPECT_EQ(code(File("a.npz"), {f2}), "E203");          // one too many
  EXPECT_EQ(code(File("a.npz"), {f2, f3}), "E204");
  EXPECT_EQ(code(File("a.npz"), {f2, s2}), "E205");
  EXPECT_EQ(code(File("absent.npz"), {f2}), "E201");
  std::ofstream(File("text.npz")) << "this is no archive";
  EXPECT_EQ(code(File("text.npz"), {f2}), "E202");
}

TEST_F(Npz, AFileMayBeLargerThanItsArraysByTheLimit) {
  ASSERT_TRUE(WriteNpz(File("a.npz"), "arg", {F32({2}, {1, 2})}).ok());
  const std::vector<LeafShape> leaves = {{ElementType::kF32, {2}, {}}};
  const int64_t size = static_cast<int64_t>(std::filesystem::file_size(File("a.npz")));
  EXPECT_TRUE(ReadNpz(File("a.npz"), "arg", leaves, size - 8).ok());
  EXPECT_EQ(DiagnosticCode(ReadNpz(File("a.npz"), "arg", leaves, size - 9).status()), "E064");
}

TEST_F(Npz, AFileThatCannotBeWrittenLeavesNothingBehind) {
  EXPECT_EQ(DiagnosticCode(WriteNpz(File("no/such/folder/a.npz"), "out", {F32({1}, {1})})), "E207");
  std::filesystem::create_directories(File("taken.npz/inside"));
  EXPECT_EQ(DiagnosticCode(WriteNpz(File("taken.npz"), "out", {F32({1}, {1})})), "E207");
  int entries = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder_)) {
    (void)e;
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

std::string Npy(absl::string_view dictionary, absl::string_view data) {
  std::string s("\x93NUMPY\x01\x00", 8);
  s.push_back(static_cast<char>(dictionary.size()));
  s.push_back(0);
  return absl::StrCat(s, dictionary, data);
}

TEST(Npy, FortranOrderAndBigEndianAreBroughtToCOrder) {
  const auto a = ParseNpy(Npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }",
                              absl::string_view("\0\1\0\2\0\3\0\4", 8)),
                          "a");
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->data, std::string("\1\0\3\0\2\0\4\0", 8));
}

TEST(Npy, BrokenHeadersAreErrors) {
  for (const std::string& bytes :
       {std::string(), std::string("\x93NUMPY\x01\x00\xff\xff", 10),
        Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "123"),
        Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", ""),
        Npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (0,), }", ""),
        Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,), }", ""),
        Npy("{'descr': '|O', 'fortran_order': False, 'shape': (0,), }", ""),
        Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", "")}) {
    EXPECT_EQ(DiagnosticCode(ParseNpy(bytes, "a").status()), "E202");
  }
}

TEST(RandomInputs, AreSmallIntegersAndDependOnTheSeedOnly) {
  const std::vector<LeafShape> shapes = {{ElementType::kF32, {50}, {}},
                                         {ElementType::kS32, {50}, {}}};
  const std::vector<Tensor> a = RandomInputs(shapes, 1), b = RandomInputs(shapes, 1),
                            c = RandomInputs(shapes, 2);
  EXPECT_TRUE(BitwiseEqual(a[0], b[0]));
  EXPECT_FALSE(BitwiseEqual(a[0], c[0]));
  for (double x : Numbers(a[0])) {
    EXPECT_LE(std::abs(x), 4);
    EXPECT_EQ(x, std::round(x));
  }
  for (double x : Numbers(a[1])) EXPECT_TRUE(x >= 0 && x < 8);
}

}  // namespace
}  // namespace shardcall
