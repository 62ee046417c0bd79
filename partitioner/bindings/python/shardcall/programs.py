# SPDX-License-Identifier: Apache-2.0
"""partition, propagate, verify, run, explain, check_rule."""
import dataclasses
import json
import math
import os
import stat
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from shardcall import _core
from shardcall import arrays
from shardcall import lowered as _lowered
from shardcall import options as _options
from shardcall.errors import Error
from shardcall.report import Report
from shardcall.registry import key_of, key_over, made, tell_unused, unused
from shardcall.types import Path, Paths, ProgramLike, Rules


_MAX_INPUT = 4 << 30  # as kMaxInput of sharding/base/max_input.h


def _read(name, max_input):
    """The bytes of a file that has at most so many."""
    limit = max_input or _MAX_INPUT
    data = bytearray()
    with open(name, 'rb') as f:
        found = os.fstat(f.fileno())
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
        if size <= limit:
            while len(data) <= limit and (chunk := f.read(1 << 24)):
                data += chunk
    if max(size, len(data)) > limit:
        raise Error(f'E064 "{name}" is larger than what may be read: expected at most {limit} B, '
                    f'found {f"{size} B" if size else "more"}. Fix: Give the file that is meant, '
                    'or raise max_input', 'RESOURCE_EXHAUSTED')
    return bytes(data)


def _bytes_of(program, converter, max_input):
    """(bytes, name, the number of partitions where that stands beside them, else 0)."""
    if _lowered.is_lowered(program):
        return _lowered.to_hlo(program)
    name = '<program>'
    if isinstance(program, os.PathLike):
        name = os.fspath(program)
        try:
            data = _read(name, max_input)
        except OSError as e:
            raise Error(f'E060 {name} cannot be read: {e.strerror}. Fix: Give the path of a '
                        'program', 'NOT_FOUND') from e
    elif isinstance(program, str):
        if _is_path(program):
            raise Error(f'E060 "{program}" is a path, and text is a program itself. Fix: Give '
                        f'pathlib.Path({program!r})')
        data = program.encode()
    elif isinstance(program, (bytes, bytearray, memoryview)):
        data = bytes(program)
    else:
        raise Error(
            f'E060 an object of type {type(program).__name__} is no program. Fix: Give HLO or '
            'StableHLO as str or bytes, a pathlib.Path of a file, or a jax.stages.Lowered')
    if not converter and _core.looks_like_stablehlo(data):
        return _lowered.of_stablehlo(data) or (data, name, 0)
    return data, name, 0


def _is_path(text):
    return len(text) < 4096 and not set('\n{') & set(text) and (
        os.path.exists(text) or text.endswith(('.hlo', '.txt', '.pb', '.mlir', '.mlirbc')))


def _request(program, **given):
    return _request_and_rules(program, **given)[0]


def _request_and_rules(program, *, num_partitions=0, rules=None, plugins=(), allow_replicate=(),
                       max_reshard_bytes=0, propagate=True, conflicts='cheapest', cost='',
                       max_memory=0, search='small', strict_partial=False, converter='',
                       max_input=0):
    """(the request, the key of its targets)."""
    count = _options.count('num_partitions', num_partitions)
    limit = _options.count('max_reshard_bytes', max_reshard_bytes)
    memory = _options.count('max_memory', max_memory)
    allowed = _options.names('allow_replicate', allow_replicate)
    largest = _options.count('max_input', max_input)
    key, converter = key_of(rules, plugins), os.fspath(converter)
    settings = _lowered.settings_of(program)
    if settings is not None:  # those of its function, where no others are given
        key = key_over(settings.targets, rules if key[0] else None, plugins if key[1] else None)
        limit = limit or settings.max_reshard_bytes
        memory = memory or settings.max_memory
        allowed = allowed or settings.allow_replicate
        conflicts = settings.conflicts if conflicts == 'cheapest' else conflicts
        cost = cost or settings.cost
        search = _lowered.searched(settings) if search == 'small' else search
        strict_partial = strict_partial or settings.strict_partial
    made(key)  # before the program is read, for errors in rules
    data, name, partitions = _bytes_of(program, converter, largest)
    _lowered.take_registrations(program, data)
    return _core.Request(data, name, converter, made(key), count or partitions, bool(propagate),
                         list(allowed), limit, str(conflicts), str(cost), memory,
                         str(search), bool(strict_partial), _lowered.open_edges(program)), key


class Program:
    """A partitioned program: what each device runs, and why.

    Attributes:
      text: the per-device module as HLO text.
      num_partitions: how many devices it is for.
      report: a Report of its collectives.
    """

    def __init__(self, core):
        self._core = core

    @property
    def text(self) -> str:
        return self._core.text

    @property
    def num_partitions(self) -> int:
        return self._core.num_partitions

    @property
    def report(self) -> Report:
        return Report(self._core)

    def serialize(self) -> bytes:
        """The per-device module as a binary HloModuleProto."""
        return self._core.serialize()

    def expect(self, contract: str) -> None:
        """Raises Error (E221) where the program breaks a contract over its collectives, such as
        'all-gather=0, bytes<=1GiB'; E220 where the contract cannot be read."""
        self._core.expect(contract)

    def run(self, inputs: Sequence[Any], *,
            deadline: Optional[float] = None) -> list[Optional[np.ndarray]]:
        """Runs the program with a thread for each device.

        Args:
          inputs: whole arrays, one for each flat leaf of the program's parameters, of their types
            and shapes (E313).
          deadline: seconds that the run may take (E346), and in it a kernel, or a wait for another
            device (E319, E301). None: 60 for those two, and no limit of the run. Ctrl-C ends it.

        Returns:
          The whole results as NumPy arrays, one for each flat leaf; None for tokens.

        Raises:
          Error: inputs that do not fit (E313), a target without a kernel (E140), a kernel that
            fails (E310, E319), an op that is not evaluated (E302).
        """
        results = self._core.run(arrays.given(inputs, self._core.inputs()),
                                 _options.deadlines(deadline))
        return [arrays.to_numpy(r) for r in results]

    def _repr_html_(self):
        return self.report._repr_html_()

    def __repr__(self):
        return f'<shardcall.Program for {self.num_partitions} devices>'


def partition(program: ProgramLike, *, num_partitions: int = 0, rules: Optional[Rules] = None,
              plugins: Paths = (), allow_replicate: Sequence[str] = (), max_reshard_bytes: int = 0,
              propagate: bool = True, conflicts: str = 'cheapest', cost: str = '',
              max_memory: int = 0, search: str = 'small', strict_partial: bool = False,
              converter: Path = '', max_input: int = 0) -> Program:
    """Partitions a program into one for each device, with collectives.

    Args:
      program: HLO or StableHLO as str or bytes, a binary HloModuleProto, the pathlib.Path of a
        file with one of these, or a jax.stages.Lowered, whose results without a sharding have the
        one that the program implies, by whole axes that divide them, as where it is compiled.
      num_partitions: the number of devices; 0: what the program says.
      rules: how custom calls shard: {target: rule}, a rule being a string such as
        '... d, d -> ... d', a dict with the keys that a target of a manifest has, or a list of
        these, one for each signature of the target.
      plugins: paths of manifests and of libraries with rules and kernels.
      allow_replicate: targets without a rule that may be gathered, or ('all',).
      max_reshard_bytes: a limit of what one reshard may send per device (E210); 0: none.
      propagate: False: what has no annotation is whole on every device.
      conflicts: what takes an axis that several dimensions of a value could have, in an op that
        combines elements: 'cheapest', what leads to the cheapest plan; 'wait', nothing until all
        else is propagated, as in Shardy; 'larger' or 'smaller', at once that of the larger or
        smaller source (E212).
      cost: the machine that plans are compared for: 'host', 'h100' or 'tpu_v5p', or what is other
        on it, 'bandwidth=25e9,latency=1e-5' (bandwidth, flops and memory per second, latency in
        seconds, trips of loops that state none), or both, the name first (E211); with
        'host_devices=8,network=50e9' devices 0 to 7 share a host, and each sends so many bytes per
        second to other hosts ('network_latency=1e-5' may follow); with 'bandwidth.data=25e9,
        latency.data=1e-5,bandwidth.model=400e9' axes of the mesh have rates of their own; with
        'collectives=all-gather+all-reduce,groups=grid' no other collectives and groups are used
        (E214 for those of the program itself that nothing stands for); '': an accelerator with
        50e9 bytes per second between devices, and all collectives.
      max_memory: the bytes that a device may need at its peak (E210); 0: no limit.
      search: for which programs the shardings of values that nothing annotates are chosen together
        by cost, in place of those that propagation gives: 'none'; 'small', those of up to 350
        instructions; 'all', large ones too, whose planning then takes 10 to 30 times as long
        (E213). Without effect where `conflicts` is an order.
      strict_partial: True: sums over devices are reduced before they are multiplied, divided or
        used in a dot, so that no part of one meets a number that is not finite, or overflows where
        the sum does not.
      converter: a PJRT plugin that converts StableHLO; '': the one that is found.
      max_input: the bytes that the file of a program may have (E064); 0: 4 GiB.

    Returns:
      A Program.

    Raises:
      Error: what cannot be read (E0xx), a target without a rule (E101), a rule that does not fit
        (E111) and all that the page of diagnostics has. A rule for a target that the program does
        not call is a warning (W206).
    """
    request, key = _request_and_rules(
        program, num_partitions=num_partitions, rules=rules, plugins=plugins,
        allow_replicate=allow_replicate, max_reshard_bytes=max_reshard_bytes, propagate=propagate,
        conflicts=conflicts, cost=cost, max_memory=max_memory, search=search,
        strict_partial=strict_partial, converter=converter, max_input=max_input)
    core = _core.partition(request)
    tell_unused(unused(key, core.called), 'the program', core.called)
    return Program(core)


def propagate(program: ProgramLike, **options: Any) -> str:
    """The program as HLO text with the sharding of every instruction. Options and errors as of
    `partition`."""
    return _core.propagate(_request(program, **options))


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a partitioned program computes what the program does: true where it does.

    Attributes:
      status: 'ok', 'mismatch', or 'unsupported' where our own evaluator lacks an op.
      reason: of the last two.
      details: as `shardcall verify` prints them, with the largest difference of each output.
    """
    status: str
    reason: str
    details: dict

    def __bool__(self):
        return self.status == 'ok'


def verify(program: ProgramLike, inputs: Optional[Sequence[Any]] = None, *, seed: int = 0,
           deadline: Optional[float] = None, **options: Any) -> Verification:
    """Runs a program partitioned and whole, and compares: outputs that exact values make must be
    equal to the bit, the others within rounding.

    Args:
      program, options: as of `partition`.
      inputs: one array for each flat leaf of the parameters; None: random ones.
      seed: of the random inputs.
      deadline: as of Program.run, for all of its runs together.

    Returns:
      A Verification.

    Raises:
      Error: as of `partition` and Program.run.
    """
    return _verified(program, inputs, seed, _options.deadlines(deadline), options)


def _verified(program, inputs, seed, deadlines, options):
    request = _request(program, **options)
    seed = _options.count('seed', seed)
    given = arrays.given(inputs, _core.inputs(request)) if inputs is not None else []
    details = json.loads(_core.verify(request, seed, given, deadlines))
    return Verification(details['status'], details.get('reason', ''), details)


def run(program: ProgramLike, inputs: Sequence[Any], *, deadline: Optional[float] = None,
        **options: Any) -> list[Optional[np.ndarray]]:
    """`partition` and Program.run in one, with the options and errors of both."""
    return partition(program, **options).run(inputs, deadline=deadline)


def explain(program: ProgramLike, **options: Any) -> Report:
    """`partition`'s Report: collectives, bytes, and what asked for each. Options and
    errors as there."""
    return partition(program, **options).report


@dataclasses.dataclass(frozen=True)
class RuleCheck:
    """What was found of a target's rule: true where it holds.

    Attributes:
      verdict: 'holds', 'needless' (right, and more is sent than must be), 'missing', 'incorrect',
        'handler_fault' (the kernel crashes or leaves its buffers).
      suggestion: a rule that holds, where one was found.
      untested: what could not be tried, and why.
      details: as `shardcall check-rule` prints them.
    """
    verdict: str
    suggestion: str
    untested: tuple
    details: dict

    def __bool__(self):
        return self.verdict == 'holds'


def check_rule(target: str, program: Optional[ProgramLike] = None, *, seed: int = 0,
               vjp: bool = False, deadline: float = 20.0, rules: Optional[Rules] = None,
               plugins: Paths = (), **options: Any) -> RuleCheck:
    """Proves a target's rule with its kernel: every factor is sharded over 2, 3 and 4 parts in
    even and uneven sizes, and results are held against the whole.

    Args:
      target: its name.
      program: one with calls of it, which are checked; None: those that its rule says.
      seed: of the random inputs.
      vjp: check its VJP against finite differences, too.
      deadline: seconds that a kernel may take.
      rules, plugins: as of `partition`.
      options: of the program, as of `partition`.

    Returns:
      A RuleCheck.

    Raises:
      Error: a target without a rule (E101) or kernel (E140), or a kernel that takes no call that
        was tried (E190).
    """
    if program is not None and _lowered.has_partitioner_alone(target, program):
        return _check_as_sharded(program, seed=seed, deadline=deadline, rules=rules,
                                 plugins=plugins, **options)
    if program is None:
        if options:
            raise TypeError(f'{", ".join(options)} without a program: expected rules, plugins, seed, '
                            'vjp, deadline')
        request, key = None, key_of(rules, plugins)
    else:
        request, key = _request_and_rules(program, rules=rules, plugins=plugins, **options)
    return checked(key, target, request, seed=seed, vjp=vjp, deadline=deadline)


def checked(key, target, request, *, seed, vjp, deadline):
    """`check_rule` with the targets of a key of the registry, of a _core.Request or None."""
    details = json.loads(_core.check_rule(
        made(key), target, request, _options.count('seed', seed), bool(vjp),
        _options.seconds('deadline', deadline)))
    return RuleCheck(details['verdict'], details.get('suggestion', ''),
                     tuple(details.get('untested', ())), details)


def _check_as_sharded(program, *, seed, deadline, **options):
    """The check of a target without a kernel, whose partitioner makes a program of a call, such as
    a custom_partitioning. That knows the program's own mesh alone, so what is tried are the
    program's shardings."""
    deadlines = (_options.seconds('deadline', deadline), math.inf)
    found = _verified(program, None, seed, deadlines, options)
    if found.status == 'unsupported':
        raise Error(f'E191 the calls cannot be checked: {found.reason}. Fix: Check a program of ops '
                    'that are evaluated here')
    verdict = 'holds' if found else 'incorrect'
    untested = ('shardings other than those of the program',)
    return RuleCheck(verdict, '', untested, {**found.details, 'verdict': verdict,
                                             'untested': list(untested)})
