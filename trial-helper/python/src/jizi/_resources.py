"""Throughput, memory and CPU time, which travel with a report now and then as metrics jizi/..."""

from __future__ import annotations

import os
import resource
import time
from typing import Dict


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0.0


class ResourceMeter:
    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last = time.monotonic()
        self._last_step = -1

    def due(self, step: int) -> Dict[str, float]:
        now = time.monotonic()
        passed = now - self._last
        if self._last_step < 0:
            self._last_step = step
        if self._every_s <= 0 or passed < self._every_s:
            return {}
        steps = step - self._last_step
        self._last, self._last_step = now, step
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "jizi/steps_per_s": steps / passed,
            "jizi/rss_bytes": _resident_bytes(),
            "jizi/cpu_s": usage.ru_utime + usage.ru_stime,
        }
