# SPDX-License-Identifier: Apache-2.0
"""What the package's functions take, as types."""
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

# HLO or StableHLO as text or bytes, the path of a file, or a jax.stages.Lowered.
ProgramLike = Union[str, bytes, bytearray, memoryview, 'os.PathLike[str]', Any]
# {target: rule}; a rule is a string, or has the keys that a target of a manifest has, or is a list
# of these, one for each signature.
Rules = Mapping[str, Union[str, Mapping[str, Any], Sequence[Any]]]
Path = Union[str, 'os.PathLike[str]']
Paths = Union[Path, Sequence[Path]]
Targets = Union[str, Sequence[str]]
