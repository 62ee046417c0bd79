// SPDX-License-Identifier: Apache-2.0
// The C ABI of XLA's typed FFI, versions 0.1 to 0.5, declared here without XLA's headers (for
// x86-64 and AArch64 Linux: LP64, little endian): the structs that a handler is given. The table
// of functions that a handler calls back is in abi_table.h.
//
// `struct_size` is a lower bound of what the other side has filled in, never a length to copy; the
// values that XLA's headers require are the k...Size constants. Only that of a call frame is
// compared for equality: with 168, although the struct has 176 bytes. Sizes and offsets are
// asserted in abi.cc, and against XLA's own header in tests/kernels if that is found.
#ifndef SHARDCALL_KERNELS_FFI_ABI_H_
#define SHARDCALL_KERNELS_FFI_ABI_H_

#include <cstddef>
#include <cstdint>

namespace shardcall::abi {

struct Error;             // defined in ffi_error.h
struct Future;            // defined in ffi_future.h
struct ExecutionContext;  // defined in ffi_context.h
struct Api;               // abi_table.h

inline constexpr int kMajorVersion = 0;
inline constexpr int kOldestMinorVersion = 1;
inline constexpr int kNewestMinorVersion = 5;

enum class ExtensionType : int32_t { kMetadata = 1 };
enum class ArgType : int32_t { kBuffer = 1 };
enum class RetType : int32_t { kBuffer = 1 };
enum class AttrType : int32_t { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };
enum class Stage : int32_t {
  kInstantiate = 0,
  kPrepare = 1,
  kInitialize = 2,
  kExecute = 3,
  kRecord = 4,  // from 0.4
};
// Numbers of absl::StatusCode, and of xla.PrimitiveType (ElementType).
using ErrorCode = int32_t;
using DataType = int32_t;

using Traits = uint32_t;
inline constexpr Traits kCommandBufferCompatible = 1u << 0;

struct ExtensionBase {
  size_t struct_size;
  ExtensionType type;
  ExtensionBase* next;
};

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int32_t major;
  int32_t minor;
};

struct Buffer {
  size_t struct_size;
  ExtensionBase* extension_start;
  DataType dtype;
  void* data;
  int64_t rank;
  const int64_t* dims;
};

struct ByteSpan {
  const char* ptr;
  size_t len;
};

struct Scalar {
  DataType dtype;
  const void* value;
};

struct Array {
  DataType dtype;
  size_t size;  // elements
  const void* data;
};

struct TypeId {
  int64_t id;  // 0: none yet
};

struct TypeInfo {
  size_t struct_size;
  ExtensionBase* extension_start;
  void (*deleter)(void* object);
};

struct Args {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  ArgType* types;
  void** args;  // to Buffer
};

struct Rets {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  RetType* types;
  void** rets;  // to Buffer
};

struct Attrs {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  AttrType* types;
  ByteSpan** names;  // sorted bytewise
  void** attrs;      // to Array, Attrs, Scalar or ByteSpan
};

struct CallFrame {
  size_t struct_size;
  ExtensionBase* extension_start;
  const Api* api;
  ExecutionContext* ctx;
  Stage stage;
  Args args;
  Rets rets;
  Attrs attrs;
  Future* future;  // out; beyond struct_size, but written
};

// Null is success; the caller takes ownership of an error.
using Handler = Error*(CallFrame*);

struct Metadata {
  size_t struct_size;
  ApiVersion api_version;
  Traits traits;
  TypeId state_type;  // from 0.2; beyond struct_size, but written
};

struct MetadataExtension {
  ExtensionBase base;
  Metadata* metadata;
};

inline constexpr size_t kExtensionBaseSize = 24;
inline constexpr size_t kApiVersionSize = 24;
inline constexpr size_t kBufferSize = 48;
inline constexpr size_t kTypeInfoSize = 24;
inline constexpr size_t kArgsSize = 40;
inline constexpr size_t kRetsSize = 40;
inline constexpr size_t kAttrsSize = 48;
inline constexpr size_t kCallFrameSize = 168;
inline constexpr size_t kMetadataSize = 36;
inline constexpr size_t kMetadataExtensionSize = 32;

}  // namespace shardcall::abi

#endif  // SHARDCALL_KERNELS_FFI_ABI_H_
