#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the command writes: modes, links, and what a signal leaves."""

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

MLP = os.path.join(command.DATA, 'hlo', 'mlp_fwd_d4m2.sdy.hlo')
MLP_INPUTS = os.path.join(command.DATA, 'hlo', 'mlp_fwd_d4m2.inputs.npz')


def writers(path):
    """The command lines that write into `path`, by flag."""
    return {'-o': ['partition', MLP, '-o', path],
            '--outputs': ['run', MLP, '--inputs=' + MLP_INPUTS, '--outputs=' + path],
            '--report': ['partition', MLP, '-o', os.devnull, '--report=' + path],
            'explain -o': ['explain', MLP, '--format=html', '-o', path]}


class OutputFilesTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.file = os.path.join(self.directory, 'file')

    def write(self, text='before'):
        with open(self.file, 'w', encoding='utf-8') as f:
            f.write(text)

    def test_a_file_keeps_its_mode(self):
        for flag, args in writers(self.file).items():
            for mode in (0o600, 0o664, 0o755):
                with self.subTest(flag=flag, mode=oct(mode)):
                    self.write()
                    os.chmod(self.file, mode)
                    done = command.run(args)
                    self.assertEqual((0, ''), (done.code, done.fault), done.err)
                    self.assertEqual(mode, stat.S_IMODE(os.stat(self.file).st_mode))
                    self.assertGreater(os.path.getsize(self.file), 100)

    def test_links_stay_and_lead_to_what_was_written(self):
        link = os.path.join(self.directory, 'link')
        os.symlink('file', link)
        for flag, args in writers(link).items():
            for there in (True, False):
                with self.subTest(flag=flag, there=there):
                    self.write()
                    if not there:
                        os.remove(self.file)
                    done = command.run(args)
                    self.assertEqual((0, ''), (done.code, done.fault), done.err)
                    self.assertTrue(os.path.islink(link))
                    self.assertGreater(os.path.getsize(self.file), 100)
                    self.assertEqual(['file', 'link'], sorted(os.listdir(self.directory)))

    def test_a_signal_during_a_write_leaves_the_old_file_and_no_part(self):
        # No file may grow beyond this: the write itself then raises SIGXFSZ.
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

        for flag, args in writers(self.file).items():
            with self.subTest(flag=flag):
                self.write()
                done = subprocess.run([command.command_path(), *args], preexec_fn=limit,
                                      capture_output=True, check=False)
                self.assertEqual(-signal.SIGXFSZ, done.returncode, done.stderr)
                self.assertEqual(['file'], os.listdir(self.directory))
                with open(self.file, encoding='utf-8') as f:
                    self.assertEqual('before', f.read())


if __name__ == '__main__':
    unittest.main()
