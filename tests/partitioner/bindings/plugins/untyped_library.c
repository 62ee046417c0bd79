// SPDX-License-Identifier: Apache-2.0
// Untyped custom-call functions as older libraries have them; the functions
// that set the status are left undefined.
#include <stddef.h>
#include <string.h>

typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus* status);
void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status, const char* message,
                                   size_t message_len);

// ORIGINAL: two scalars, their difference.
void subtract_f32(void* out, const void** in) {
  *(float*)out = *(const float*)in[0] - *(const float*)in[1];
}

// ORIGINAL with a tuple as result: sum and difference.
void sum_and_difference(void* out, const void** in) {
  float* const* to = (float* const*)out;
  *to[0] = *(const float*)in[0] + *(const float*)in[1];
  *to[1] = *(const float*)in[0] - *(const float*)in[1];
}

// STATUS_RETURNING: the root of what is not negative, in whole numbers.
void root(void* out, const void** in, XlaCustomCallStatus* status) {
  const float x = *(const float*)in[0];
  XlaCustomCallStatusSetFailure(status, "to be taken back", 16);
  if (x < 0) {
    XlaCustomCallStatusSetFailure(status, "negative and more", 8);
    return;
  }
  float r = 0;
  while ((r + 1) * (r + 1) <= x) ++r;
  *(float*)out = r;
  XlaCustomCallStatusSetSuccess(status);
}

// STATUS_RETURNING_UNIFIED: adds the float that stands in the opaque text.
void add_opaque(void* out, const void** in, const char* opaque, size_t opaque_len,
                XlaCustomCallStatus* status) {
  float value;
  if (opaque_len != sizeof value) {
    XlaCustomCallStatusSetFailure(status, "opaque is no float", 18);
    return;
  }
  memcpy(&value, opaque, sizeof value);
  *(float*)out = *(const float*)in[0] + value;
}

// ORIGINAL: u4[5] + 1 modulo 16, two elements in a byte.
void next_u4(void* out, const void** in) {
  const unsigned char* x = (const unsigned char*)in[0];
  for (int k = 0; k < 3; ++k) {
    ((unsigned char*)out)[k] =
        (unsigned char)(((x[k] & 15) + 1) % 16 | ((x[k] >> 4) + 1) % 16 << 4);
  }
}

// Crashes when it is called with one argument in place of two.
void writes_through_its_second(void* out, const void** in) {
  (void)out;
  *(volatile float*)(in == 0 ? 0 : 8) = 1;
}

// Fills a page and more of what it takes for its results.
void fills_a_page(void* out) {
  for (int i = 0; i < 2048; ++i) ((volatile float*)out)[i] = 1;
}
