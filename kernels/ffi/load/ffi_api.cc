// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/load/ffi_api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/load/loaded_object.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/kernels/ffi/xla/ffi_table.h"
#include "shardcall/sharding/base/made_at_first_use.h"

namespace shardcall {
namespace {

// Whether `from` is readable, and its contents. A system call fails without a signal.
bool ReadIfReadable(const void* from, void* to, size_t size) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const auto length = static_cast<long>(size);  // NOLINT: as of syscall
  const bool read_it = syscall(SYS_write, ends[1], from, size) == length &&
                       syscall(SYS_read, ends[0], to, size) == length;
  close(ends[0]);
  close(ends[1]);
  return read_it;
}

// The headers of 0.1 pass a struct that ends before type_info, the later ones one that has it; both
// give 40 bytes as its size. After the struct of 0.1 there is other memory of the caller's stack,
// so it is only taken for a TypeInfo if it has the size of one.
__attribute__((no_sanitize("address"))) const abi::TypeInfo* TypeInfoOf(
    const abi::TypeRegisterArgs* args, abi::TypeInfo* copy) {
  constexpr size_t kLargestTypeInfo = 256;
  const abi::TypeInfo* const info = args->type_info;
  if (reinterpret_cast<uintptr_t>(info) % alignof(abi::TypeInfo) != 0 ||
      !ReadIfReadable(info, copy, sizeof(*copy))) {
    return nullptr;
  }
  const bool fits = copy->struct_size >= abi::kTypeInfoSize && copy->struct_size < kLargestTypeInfo;
  return fits ? copy : nullptr;
}

abi::Error* RegisterTypeOfAnyVersion(abi::TypeRegisterArgs* args) {
  if (args == nullptr || args->header.struct_size < abi::kTypeRegisterArgsSize) {
    return FfiTable(abi::kNewestMinorVersion)->type_register(args);
  }
  abi::TypeInfo copy = {};
  abi::TypeRegisterArgs known = {
      {sizeof(known), nullptr}, args->name, args->type_id, TypeInfoOf(args, &copy)};
  return FfiTable(abi::kNewestMinorVersion)->type_register(&known);
}

constexpr char kHere = 0;

// Searches only the library around `caller`, without the loader's lock.
void* OfTheCaller(const void* caller, absl::string_view name) {
  const link_map* const object = ObjectAround(caller);
  if (object == nullptr || object == ObjectAround(&kHere)) return nullptr;
  void* found = nullptr;
  ForEachExport(*object, [&](const char* exported, void* address) {
    if (exported == name) found = address;
  });
  return found;
}

// The function of that name that the code at `caller` would find without ours; null if there is
// none. A library that contains or links XLA finds ours first if the program exports it.
void* OfItsOwn(const void* caller, const char* name) {
  // Another thread holds the loader's lock, and may wait for this one.
  if (LoadedByAnotherThread()) return OfTheCaller(caller, name);
  void* const library = HandleAround(caller);
  if (library == nullptr) return nullptr;  // the program
  void* const found = dlsym(library, name);
  return found == nullptr || InOneObject(&kHere, found) ? nullptr : found;
}

}  // namespace

const abi::Api* internal::FfiRegistrationApi() {
  return &internal::MadeAtFirstUse([] {
    auto* const made = new abi::Api(*FfiTable(abi::kNewestMinorVersion));
    made->type_register = RegisterTypeOfAnyVersion;
    return made;
  });
}

const void* internal::FfiApiFor(const char* symbol, const void* caller) {
  void* const theirs = OfItsOwn(caller, symbol);
  return theirs == nullptr ? FfiRegistrationApi() : reinterpret_cast<const void* (*)()>(theirs)();
}

}  // namespace shardcall

// Weak, so that a program that links XLA itself uses XLA's.
extern "C" __attribute__((visibility("default"), weak)) const void* XLA_FFI_GetApi() {
  return shardcall::FfiApiFor(shardcall::kGetApiSymbol, __builtin_return_address(0));
}

namespace xla::ffi {

__attribute__((visibility("default"), weak)) const void* GetXlaFfiApi() {
  return shardcall::FfiApiFor(shardcall::kGetXlaFfiApiSymbol, __builtin_return_address(0));
}

}  // namespace xla::ffi
