// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/python_traceback.h"

#include "gtest/gtest.h"

namespace shardcall {
namespace {

TEST(PythonTraceback, HasWhatWasRaisedAndTheFramesOfNoLibrary) {
  const PythonTraceback t = ReadTraceback(
      "partitioner: Traceback (most recent call last):\n"
      "  File \"/home/me/train.py\", line 17, in <module>\n    step(x)\n"
      "  File \"/usr/lib/python3/dist-packages/jax/pjit.py\", line 259, in cache_miss\n"
      "  File \"/home/me/venv/lib/python3.12/site-packages/jax/core.py\", line 7, in bind\n"
      "  File \"/home/me/kernel.py\", line 16, in partition\n    return 1 / 0\n           ~~^~~\n"
      "ZeroDivisionError: division by zero\n");
  EXPECT_EQ(t.raised, "ZeroDivisionError: division by zero");
  EXPECT_EQ(t.frames,
            "  File \"/home/me/train.py\", line 17, in <module>\n"
            "  File \"/home/me/kernel.py\", line 16, in partition");
}

TEST(PythonTraceback, HasTheInnermostFrameWhereAllAreOfLibraries) {
  const PythonTraceback t = ReadTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/usr/lib/python3.11/a.py\", line 1, in f\n"
      "  File \"/usr/lib/python3.11/b.py\", line 2, in g\n"
      "NameError: unbound: nope\n  in two lines");
  EXPECT_EQ(t.raised, "NameError: unbound: nope\n  in two lines");
  EXPECT_EQ(t.frames, "  File \"/usr/lib/python3.11/b.py\", line 2, in g");
}

TEST(PythonTraceback, IsOfTheLastOfSeveral) {
  const PythonTraceback t = ReadTraceback(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'a'\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\nTypeError: no");
  EXPECT_EQ(t.raised, "TypeError: no");
  EXPECT_EQ(t.frames, "  File \"b.py\", line 2, in g");
}

TEST(PythonTraceback, AnotherTextIsTaken) {
  for (const char* text : {"", "no", "Traceback (most recent call last):"}) {
    EXPECT_EQ(ReadTraceback(text).raised, text);
    EXPECT_EQ(ReadTraceback(text).frames, "");
  }
  EXPECT_EQ(ReadTraceback("Traceback (most recent call last):\n").raised, "");
}

}  // namespace
}  // namespace shardcall
