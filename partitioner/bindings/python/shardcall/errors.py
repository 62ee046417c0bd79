# SPDX-License-Identifier: Apache-2.0
"""What the package raises."""
import re

_CODE = re.compile(r'([EW]\d{3}) ')
_FIX = re.compile(r'\. Fix: (.*?)(?:\n|$)', re.S)


class Error(Exception):
    """A diagnostic of shardcall: what is wrong, where, what was expected and found, one fix.

    Attributes:
      code: its stable code, such as 'E101'; '' where there is none. `shardcall help E101`, and
        the page of diagnostics, have more of it.
      fix: what to do, one sentence; '' where there is none.
      status: the kind of failure, such as 'INVALID_ARGUMENT' or 'UNIMPLEMENTED'.
    """

    code: str
    fix: str
    status: str

    def __init__(self, message: str, status: str = 'INVALID_ARGUMENT') -> None:
        super().__init__(message)
        code, fix = _CODE.match(message), _FIX.search(message)
        self.code = code.group(1) if code else ''
        self.fix = fix.group(1) if fix else ''
        self.status = status

    def __reduce__(self):
        return Error, (str(self), self.status)


class Warning(UserWarning):
    """What is not as the user may think, and is no error: a program that was left to XLA."""


# Options that the command and functions here have in common, as fixes name them.
_OPTIONS = re.compile(r'--(plugin|allow-replicate|converter|deadline|max-reshard-bytes|'
                      r'max-memory|num-partitions|search|strict-partial)(?=[=\s.,)]|$)')


def _argument(option):
    name = option.group(1).replace('-', '_')
    return 'plugins' if name == 'plugin' else name


def in_python(text):
    """A text of the compiled part in the words of Python: arguments for the command's options, and
    rules= for the manifest that the package makes of rules. (A file has its whole path there.)"""
    return re.sub(r'\bmanifest rules\b', 'rules=', _OPTIONS.sub(_argument, text))


_raised = None  # by the callback that was asked last; the compiled part keeps its text alone


def note(raised):
    """Called by the compiled part with what a callback raised."""
    global _raised
    _raised = raised


def make(status, message):
    """Called by the compiled part, whose messages name the command's options."""
    global _raised
    error = Error(in_python(message), status)
    # A callback's error may have been dropped, if others still answered.
    if _raised is not None and error.code in ('E120', 'E121'):
        cause = _raised.__cause__ or _raised
        if str(cause) in message:
            error.__cause__ = cause
    _raised = None
    return error
