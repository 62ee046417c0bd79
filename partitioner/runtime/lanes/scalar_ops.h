// SPDX-License-Identifier: Apache-2.0
// Arithmetic on single values, with HLO's results where C++ has undefined behaviour: x / 0 is all
// ones, INT_MIN / -1 is INT_MIN, x % 0 is x; integer overflow wraps; max and min return NaN if one
// side is NaN, and order -0 < +0. Templates for lane kernels and reductions.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_SCALAR_OPS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_SCALAR_OPS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "shardcall/sharding/base/float_extrema.h"

namespace shardcall {
inline namespace internal {
namespace scalar_ops {

// Arithmetic on the unsigned type of at least 32 bits, so nothing overflows.
template <typename T>
struct WideUnsigned {
  using type = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
};

struct Add {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = typename WideUnsigned<T>::type;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
struct Subtract {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = typename WideUnsigned<T>::type;
      return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    } else {
      return a - b;
    }
  }
};
struct Multiply {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = typename WideUnsigned<T>::type;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};
struct Divide {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return Subtract::Do(T{0}, a);
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
struct Remainder {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return a;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
      }
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

struct Maximum {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a > b ? a : b;
    } else {
      return FloatMaximum(a, b);
    }
  }
};
struct Minimum {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? a : b;
    } else {
      return FloatMinimum(a, b);
    }
  }
};
struct Power {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b < 0) {
          if (a == 1) return 1;
          if (a == -1) return (b & 1) != 0 ? T{-1} : T{1};
          return 0;
        }
      }
      T result = 1;
      for (auto e = static_cast<std::make_unsigned_t<T>>(b); e != 0; e >>= 1) {
        if (e & 1) result = Multiply::Do(result, a);
        a = Multiply::Do(a, a);
      }
      return result;
    } else {
      return std::pow(a, b);
    }
  }
};
struct MulHigh {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using W =
          std::conditional_t<sizeof(T) == 8,
                             std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                             std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
      return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
    } else {
      return a * b;
    }
  }
};

struct Negate {
  template <typename T>
  static T Do(T a) {
    if constexpr (std::is_integral_v<T>) {
      return Subtract::Do(T{0}, a);
    } else {
      return -a;
    }
  }
};
struct Abs {
  template <typename T>
  static T Do(T a) {
    if constexpr (std::is_unsigned_v<T>) {
      return a;
    } else if constexpr (std::is_integral_v<T>) {
      return a < 0 ? Negate::Do(a) : a;
    } else {
      return std::fabs(a);
    }
  }
};
struct Sign {
  template <typename T>
  static T Do(T a) {
    if constexpr (std::is_unsigned_v<T>) {
      return a != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return (a > 0) - (a < 0);
    } else {
      return a > 0 ? T{1} : (a < 0 ? T{-1} : a);  // zeros and NaN stay
    }
  }
};
struct Clamp {
  template <typename T>
  static T Do(T low, T x, T high) {
    return Minimum::Do(Maximum::Do(low, x), high);
  }
};

}  // namespace scalar_ops
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_SCALAR_OPS_H_
