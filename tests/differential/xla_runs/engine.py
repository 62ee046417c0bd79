# SPDX-License-Identifier: Apache-2.0
"""XLA in a process of its own, which it may end: the next case gets another. What
ended the process, or its time limit, is the answer of the case that it had."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))


class Worker:
    def __init__(self, devices, handlers, timeout):
        self.arguments = [sys.executable, os.path.join(HERE, 'xla_worker.py'), str(devices), handlers]
        self.timeout = timeout
        self.process = self.log = None
        self.deaths = 0

    def ask(self, case):
        if self.process is None:
            self.log = tempfile.TemporaryFile()
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                text=True, env=dict(os.environ, OPENBLAS_NUM_THREADS='1'))
        late = threading.Event()

        def end():
            late.set()
            self.process.kill()
        timer = threading.Timer(self.timeout, end)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(case) + '\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.deaths += 1
        self.log.seek(0)
        lines = self.log.read().decode(errors='replace').splitlines()
        told = [x for x in lines if re.match(r'F\d{4} |.*Check failed', x)] or lines
        self.process, log = None, self.log
        log.close()
        reason = (f'no answer in {self.timeout:.0f} s' if late.is_set() else
                  f'the process ended with status {status}')
        return {'status': 'failed', 'stage': 'died', 'reason': ': '.join([reason, *told[-1:]])[:1000]}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.log.close()
            self.process = None
