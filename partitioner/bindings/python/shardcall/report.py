# SPDX-License-Identifier: Apache-2.0
"""What a partitioned program sends, and why."""
import html
import json
import os
from typing import Any, Optional

from shardcall import _core
from shardcall.types import Path


class Report:
    """The collectives of a partitioned program: printed as text, shown in a notebook as a page.

        report = shardcall.explain(program)
        print(report)
        report.total_bytes, report.count('all-gather')
    """

    def __init__(self, core):
        self._core = core
        self._dict = None

    def to_dict(self) -> dict[str, Any]:
        """As `shardcall partition --report` writes it; its keys are stable."""
        if self._dict is None:
            self._dict = json.loads(self._core.report())
        return self._dict

    @property
    def collectives(self) -> list[dict[str, Any]]:
        """A dict for each collective: its opcode, bytes, and cause."""
        return self.to_dict()['collectives']

    def count(self, opcode: Optional[str] = None) -> int:
        """How many collectives of this opcode ('all-gather') there are; None: of all."""
        totals = self.to_dict()['totals']
        return sum(t['once']['count'] for name, t in totals.items() if opcode in (None, name))

    @property
    def total_bytes(self) -> int:
        """Bytes that one device sends in one run of the program."""
        return sum(t['weighted']['bytes_moved'] for t in self.to_dict()['totals'].values())

    @property
    def memory(self) -> int:
        """Bytes of one device's memory that the program needs when its instructions run in their
        order; to_dict()['memory'] has its parts."""
        return self.to_dict()['peak_memory']

    @property
    def fallbacks(self) -> list[dict[str, Any]]:
        """Ops that every device computes whole, for want of a better way."""
        return self.to_dict().get('fallbacks', [])

    def expect(self, contract: str) -> None:
        """Raises Error (E221) where the program breaks a contract such as
        'all-gather=0, bytes<=1GiB'."""
        self._core.expect(contract)

    def to_html(self) -> str:
        """One page that needs nothing else."""
        return self._core.explain('html')

    def save(self, path: Path) -> None:
        """Writes to_html() into a file, whole or not at all. Raises Error (E061) if that fails."""
        _core.write_file(os.fspath(path), self.to_html())

    def __str__(self):
        return self._core.explain('text')

    __repr__ = __str__

    def _repr_html_(self):
        # In a frame, so that its styles and the notebook's do not mix.
        page = html.escape(self.to_html(), quote=True)
        return (f'<iframe srcdoc="{page}" title="shardcall explain" width="100%" height="900" '
                'style="border:0"></iframe>')
