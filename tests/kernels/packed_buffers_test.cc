// SPDX-License-Identifier: Apache-2.0
// Elements of 1, 2 and 4 bits: several in a byte for handlers of every ABI, one in a byte
// elsewhere. The bytes are those that XLA:CPU of jaxlib 0.10.2 and 0.12.0.1 passes.
#include "shardcall/kernels/ffi/packed_buffers.h"

#include <thread>

#include "gmock/gmock.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/kernels/ffi/exported_handler.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/kernels/ffi/xla/ffi_device.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using Bytes = std::vector<uint8_t>;

BufferView Of(ElementType type, Bytes& bytes, std::vector<int64_t> dims = {}) {
  if (dims.empty()) dims = {static_cast<int64_t>(bytes.size())};
  return View(bytes, dims, type);
}

TEST(PackedBuffers, TheFirstElementIsInTheLowestBitsAsUnderXla) {
  struct Case {
    ElementType type;
    std::vector<int> elements;
    std::vector<int> packed;
  };
  for (const Case& c : {Case{ElementType::kS4, {1, -2, 3, -4, 5, 6, -7}, {225, 195, 101, 9}},
                        {ElementType::kU4, {1, 2, 3, 4, 15, 6, 7}, {33, 67, 111, 7}},
                        {ElementType::kS2, {1, -2, 0, -1, 1, 0, 1}, {201, 17}},
                        {ElementType::kU2, {1, 2, 3, 0, 1, 2, 3}, {57, 57}},
                        {ElementType::kF4E2M1FN, {2, 12, 5, 1, 7, 15, 3}, {194, 21, 247, 3}},
                        {ElementType::kU1, {1, 0, 1, 1, 0, 0, 0, 1, 1}, {141, 1}},
                        {ElementType::kS1, {-1, 0, -1}, {5}}}) {
    SCOPED_TRACE(ElementTypeName(c.type));
    const Bytes from(c.elements.begin(), c.elements.end());
    const auto count = static_cast<int64_t>(from.size());
    ASSERT_TRUE(IsPackedType(c.type));
    ASSERT_EQ(PackedBytes(c.type, count), static_cast<int64_t>(c.packed.size()));
    Bytes packed(c.packed.size(), 0xff), back(from.size(), 0x55);
    PackElements(c.type, count, from.data(), packed.data());
    EXPECT_THAT(packed, ElementsAreArray(c.packed));
    UnpackElements(c.type, count, packed.data(), back.data());
    EXPECT_EQ(back, from);
  }
  for (ElementType type : {ElementType::kPred, ElementType::kS8, ElementType::kF6E2M3FN,
                           ElementType::kF8E5M2, ElementType::kToken}) {
    EXPECT_FALSE(IsPackedType(type)) << ElementTypeName(type);
  }
}

TEST(PackedBuffers, BitsAboveAnElementDoNotReachItsNeighbour) {
  const Bytes from = {0xf1, 0xf2, 0xf3};
  Bytes packed(2);
  PackElements(ElementType::kU4, 3, from.data(), packed.data());
  EXPECT_THAT(packed, ElementsAre(0x21, 0x03));
}

TEST(PackedBuffers, BuffersOfOneAddressShareACopyAndOthersAreThoseGiven) {
  Bytes x = {1, 2, 3}, y(3);
  std::vector<float> f(2);
  const std::vector<BufferView> in = {Of(ElementType::kU4, x), F32(f), Of(ElementType::kU4, x)};
  const std::vector<BufferView> out = {Of(ElementType::kU4, y), Of(ElementType::kU4, x)};
  EXPECT_TRUE(ConvertedBuffers::Needed(true, in, out));
  EXPECT_FALSE(ConvertedBuffers::Needed(false, in, out));
  const ConvertedBuffers buffers(true, in, out);
  EXPECT_EQ(buffers.operands()[1].data, f.data());
  EXPECT_EQ(buffers.operands()[0].data, buffers.operands()[2].data);
  EXPECT_EQ(buffers.operands()[0].data, buffers.results()[1].data);
  EXPECT_NE(buffers.results()[0].data, buffers.results()[1].data);
  EXPECT_EQ(buffers.results()[1].byte_size(), 2);
  static_cast<uint8_t*>(buffers.results()[1].data)[0] = 0x54;
  static_cast<uint8_t*>(buffers.results()[0].data)[1] = 0x0f;
  buffers.CopyBack();
  EXPECT_THAT(x, ElementsAre(4, 5, 3));
  EXPECT_THAT(y, ElementsAre(0, 0, 15));
}

// Reverses u4[n], packed: y[k] = x[n - 1 - k].
abi::Error* Reverse(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, 3)) return nullptr;
  const auto& x = *static_cast<abi::Buffer*>(frame->args.args[0]);
  const auto& y = *static_cast<abi::Buffer*>(frame->rets.rets[0]);
  const int64_t n = x.dims[0];
  const auto* from = static_cast<const uint8_t*>(x.data);
  auto* to = static_cast<uint8_t*>(y.data);
  for (int64_t k = 0; k < (n + 1) / 2; ++k) to[k] = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t j = n - 1 - k;
    to[k / 2] |= static_cast<uint8_t>((from[j / 2] >> (j % 2 * 4) & 15) << (k % 2 * 4));
  }
  return nullptr;
}

TEST(PackedBuffers, TypedHandlersGetThemInOddAndEvenCounts) {
  const HandlerEntry entry = Entry(Reverse);
  EXPECT_TRUE(entry.packed);
  TestCall call;
  for (uint8_t n = 0; n < 9; ++n) {
    Bytes x, y(n, 0xff), want;
    for (uint8_t k = 0; k < n; ++k) x.push_back(k + 3);
    want.assign(x.rbegin(), x.rend());
    ASSERT_TRUE(call.Run(entry, {Of(ElementType::kU4, x)}, {Of(ElementType::kU4, y)}).ok());
    EXPECT_EQ(y, want);
  }
}

TEST(PackedBuffers, AResultInPlaceIsOneBufferForTheHandlerToo) {
  const auto entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    const auto& x = *static_cast<abi::Buffer*>(frame->args.args[0]);
    const auto& y = *static_cast<abi::Buffer*>(frame->rets.rets[0]);
    if (x.data != y.data) return MakeError(frame, 3, "not in place");
    static_cast<uint8_t*>(y.data)[1] ^= 0x88;  // the signs of elements 2 and 3
    return nullptr;
  });
  Bytes x = {1, 2, 3, 4, 5};
  TestCall call;
  const absl::Status status = call.Run(entry, {Of(ElementType::kS4, x)}, {Of(ElementType::kS4, x)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(x, ElementsAre(1, 2, static_cast<uint8_t>(-5), static_cast<uint8_t>(-4), 5));
}

TEST(PackedBuffers, UntypedHandlersGetThem) {
  const auto function = [](void* out, const void** in) {
    for (int k = 0; k < 2; ++k) {
      static_cast<uint8_t*>(out)[k] = static_cast<const uint8_t*>(in[0])[k] ^ 0xff;
    }
  };
  const auto entry =
      MakeUntypedEntry("t", "Host", reinterpret_cast<void*>(+function), /*api_version=*/1, "test");
  ASSERT_TRUE(entry.ok()) << entry.status();
  Bytes x = {1, 2, 3}, y(3);
  TestCall call;
  call.context.api_version = 1;
  ASSERT_TRUE(call.Run(*entry, {Of(ElementType::kU4, x)}, {Of(ElementType::kU4, y)}).ok());
  EXPECT_THAT(y, ElementsAre(14, 13, 12));
}

TEST(PackedBuffers, AHostHandlerGetsOneElementInAByteFromAnotherRuntimeToo) {
  HandlerEntry entry;
  entry.target = "twice_packed";
  entry.source = "test";
  entry.host = [](const HandlerContext&, absl::Span<const BufferView> in,
                  absl::Span<const BufferView> out) {
    for (int64_t k = 0; k < in[0].num_elements(); ++k) {
      static_cast<int8_t*>(out[0].data)[k] =
          static_cast<int8_t>(-static_cast<const int8_t*>(in[0].data)[k]);
    }
    return absl::OkStatus();
  };
  const auto exported = ExportHandler(entry, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  const HandlerEntry typed = Entry(exported->function);  // calls with packed buffers
  Bytes x = {1, static_cast<uint8_t>(-2), 3}, y(3);
  TestCall call;
  ASSERT_TRUE(call.Run(typed, {Of(ElementType::kS4, x)}, {Of(ElementType::kS4, y)}).ok());
  EXPECT_THAT(y, ElementsAre(static_cast<uint8_t>(-1), 2, static_cast<uint8_t>(-3)));
}

TEST(PackedBuffers, GuardsStandAtTheirPackedEnds) {
  const HandlerEntry entry = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    const auto& y = *static_cast<abi::Buffer*>(frame->rets.rets[0]);
    // A byte for each element, as size_bytes() of XLA's headers counts.
    for (int64_t k = 0; k < y.dims[0]; ++k) static_cast<volatile uint8_t*>(y.data)[k] = 0;
    return nullptr;
  });
  Bytes y(5);
  TestCall call;
  const std::vector<BufferView> out = {Of(ElementType::kS4, y)};
  const auto guarded = [&](const HandlerContext& context, absl::Span<const BufferView> in,
                           absl::Span<const BufferView> packed) {
    return CallGuarded(entry.host, context, in, packed);
  };
  EXPECT_THAT(std::string(CallConverted(true, call.context, {}, out, guarded).message()),
              testing::HasSubstr("outside of result 0, s4[5]: 2 bytes from 0 past its end"));
  EXPECT_TRUE(entry.host(call.context, {}, out).ok());  // damages nothing else, at least
}

TEST(PackedBuffers, LateWorkKeepsThem) {
  const HandlerEntry entry = Entry(Reverse);
  Bytes x = {1, 2, 3}, y(3);
  const std::vector<BufferView> in = {Of(ElementType::kU4, x)}, out = {Of(ElementType::kU4, y)};
  std::shared_ptr<const void> kept;
  const uint8_t* packed = nullptr;
  HandlerContext context;
  int asked = 0;
  context.keep_buffers = [&asked] { return ++asked, std::make_shared<int>(7); };
  const absl::Status late =
      CallConverted(true, context, in, out,
                    [&](const HandlerContext& own, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
                      packed = static_cast<const uint8_t*>(operands[0].data);
                      static_cast<uint8_t*>(results[0].data)[0] = 0xff;
                      kept = own.keep_buffers();
                      return absl::DeadlineExceededError("late");
                    });
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(packed[0], 0x21);  // still there
  EXPECT_THAT(y, ElementsAre(0, 0, 0));
}

TEST(PackedBuffers, CollectivesOfHandlersTakeThem) {
  constexpr int kDevices = 2;
  InProcessWorld world(kDevices, absl::Seconds(20));
  std::vector<Bytes> sums(kDevices, Bytes(2)), parts(kDevices, Bytes(2, 0xff));
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d) {
    threads.emplace_back([&, d] {
      const auto comm = world.Rank(d);
      HandlerContext context;
      context.device_ordinal = d;
      context.num_devices = kDevices;
      context.communicator = comm.get();
      FfiDevice device(context);
      const Shardcall_FfiDevice* c = device.c();
      constexpr auto kU4 = static_cast<int32_t>(ElementType::kU4);
      const Bytes x = {static_cast<uint8_t>(d == 0 ? 0x21 : 0x43), 0x05};  // {1, 2, 5}, {3, 4, 5}
      EXPECT_EQ(c->all_reduce(c, nullptr, 0, SHARDCALL_FFI_SUM, kU4, x.data(), sums[d].data(), 3),
                0);
      // Two blocks of 3 elements: the second begins in the middle of a byte.
      const Bytes blocks = {0x21, 0x43, 0x65};
      EXPECT_EQ(c->reduce_scatter(c, nullptr, 0, SHARDCALL_FFI_SUM, kU4, blocks.data(),
                                  parts[d].data(), 3),
                0);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(sums[0], ElementsAre(0x64, 0x0a));
  EXPECT_THAT(sums[1], ElementsAre(0x64, 0x0a));
  EXPECT_THAT(parts[0], ElementsAre(0x42, 0x06));
  EXPECT_THAT(parts[1], ElementsAre(0xa8, 0x0c));
}

TEST(PackedBuffers, ADeviceAloneCopiesAsManyBytesAsThereAre) {
  HandlerContext context;
  FfiDevice device(context);
  const Bytes x = {0x21, 0x03};
  Bytes y = {0, 0, 0x77};
  EXPECT_EQ(device.c()->all_reduce(device.c(), nullptr, 0, SHARDCALL_FFI_SUM,
                                   static_cast<int32_t>(ElementType::kU4), x.data(), y.data(), 3),
            0);
  EXPECT_THAT(y, ElementsAre(0x21, 0x03, 0x77));
}

}  // namespace
}  // namespace shardcall
