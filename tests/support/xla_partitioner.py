# SPDX-License-Identifier: Apache-2.0
"""XLA's own propagation and partitioner (jaxlib's): the module right after its pass, as text.

XLA propagates and partitions, and little else runs: a transform that raises ends the
compilation before code is generated. All partitions are assigned to one device, so any
number of them will do. A process of its own, since XLA aborts on a failed check: it reads
requests in JSON, one a line, and answers {"text"} or {"why"}."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

SECONDS = 300
STOP = 'STOPPED_AFTER_PARTITIONING'
PASSES = ['flatten-call-graph', 'call-inliner', 'zero_sized_hlo_elimination',
          'conditional-canonicalizer', 'sharding-propagation', 'shardy-xla', 'spmd-partitioning',
          'control-dep-rewriter', 'async-collective', 'spmd-cleanup', 'HLO passes after scheduling']
NAMED = re.compile(r'sharding=\{+@?mesh')
# Of what only memory kinds annotate; kept where the partitioner takes it.
STRIP = 'pre-spmd-partitioner'


# The passes to ask for. Which one propagates, the annotations decide.
PROPAGATED = 'sharding-propagation|shardy-xla'
PARTITIONED = 'spmd-partitioning'


def stablehlo_of(text):
    """Of HLO text."""
    from jaxlib import _hlo, _jax
    module = _hlo.hlo_module_from_text(text)
    return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())


def options_for(assignment):
    """To compile for one replica; `assignment`: the devices of the partitions, int32[1,n]."""
    from jaxlib import _jax
    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = assignment.shape[1]
    options.device_assignment = _jax.DeviceAssignment.create(assignment)
    return options


def compile_until_partitioned(text, passes, after, may_set):
    """(the text after that pass or None, what ended the compilation). `may_set`: of each flat
    parameter, and of each flat result, whether propagation may set its sharding; None: as the
    module says."""
    import numpy as np
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import _jax, _xla
    from jaxlib.mlir import ir
    n = devices_of(text)
    named = NAMED.search(text)  # as JAX 0.12 writes them
    shardy = bool(named) or 'xla.sdy' in text
    code = stablehlo_of(text)
    options = options_for(np.zeros((1, n), np.int32))
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = shardy
    build.debug_options.xla_enable_hlo_passes_only = ','.join(passes)
    if may_set is not None:
        build.allow_spmd_sharding_propagation_to_parameters = may_set[0]
        build.allow_spmd_sharding_propagation_to_output = may_set[1]
    client = jax.devices('cpu')[0].client

    def stop(_):
        raise RuntimeError(STOP)
    with tempfile.TemporaryDirectory() as directory, mlir.make_ir_context():
        build.debug_options.xla_dump_to = directory
        build.debug_options.xla_dump_hlo_as_text = True
        build.debug_options.xla_dump_hlo_pass_re = after
        parsed = ir.Module.parse(code)
        if shardy and not named:
            drop_plain_shardings(parsed)
        _xla.register_xla_transform('stop', 1, stop)
        why = ''
        try:
            client.compile_and_load(parsed, _jax.DeviceList((client.devices()[0],)), options)
        except Exception as e:  # whatever it is, it is the answer
            why = str(e)
        finally:
            _xla.clear_xla_transform('stop', 1)
        found = [f for f in sorted(glob.glob(os.path.join(directory, '*.txt')))
                 if re.search(rf'after_({after})', f)]
        if not found:
            return None, why
        with open(found[-1], encoding='utf-8') as f:
            return f.read(), why


def devices_of(text):
    found = re.search(r'^HloModule .*\bnum_partitions=(\d+)', text, re.M)
    if found:
        return int(found.group(1))
    found = re.search(r'<=\[([\d,]+)\]', text)
    return int(eval(found.group(1).replace(',', '*'))) if found else 1


def drop_plain_shardings(module):
    """With them XLA takes the program for one of its older annotations."""
    from jaxlib.mlir import ir

    def clean(op):
        if 'mhlo.sharding' in op.attributes:
            del op.attributes['mhlo.sharding']
        for which in ('arg_attrs', 'res_attrs'):
            if which not in op.attributes:
                continue
            op.attributes[which] = ir.ArrayAttr.get([
                ir.DictAttr.get({a.name: a.attr for a in d if a.name != 'mhlo.sharding'})
                for d in op.attributes[which]])
        return ir.WalkResult.ADVANCE
    module.operation.walk(clean)


def answer_to(request):
    with open(request['path'], encoding='utf-8', newline='') as f:
        module = f.read()
    rest = module, PASSES, request['after'], request['may_set']
    text, why = compile_until_partitioned(*rest)
    if text is None and 'annotate_device_placement' in why:
        text, why = compile_until_partitioned(module, [*PASSES, STRIP], *rest[2:])
    return {'text': text} if text is not None else {'why': why[:300] or 'it did not run'}


def worker():
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what XLA prints is no answer
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line))
        except Exception as e:
            answer = {'why': f'{type(e).__name__}: {e}'[:300]}
        answers.write(json.dumps(answer) + '\n')
        answers.flush()


class Partitioner:
    def __init__(self):
        self.process = None

    def ask(self, path, after=PARTITIONED, may_set=None):
        """{"text"} or {"why"}."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), '--worker'], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=dict(os.environ, JAX_PLATFORMS='cpu', TF_CPP_MIN_LOG_LEVEL='3'))
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        try:
            request = {'path': path, 'after': after, 'may_set': may_set}
            self.process.stdin.write(json.dumps(request) + '\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        timer.cancel()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.process = None
        return {'why': f'the process ended with status {status}'}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


if __name__ == '__main__':
    worker()
