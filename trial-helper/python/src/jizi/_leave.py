"""How a process ends: SIGTERM is noticed, and the last word of a program whose trial did not finish
while the service stayed away is its exit code: 0 would tell its worker that it finished.

Mirrors trial-helper/terminate.h and exit_code.h. Threads: the main one. In a forked child nothing
has an effect.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from typing import Any, Callable, Optional

EXIT_NOT_FINISHED = 75  # EX_TEMPFAIL of sysexits.h.

_terminate_seen = False


def _on_terminate(number: int, frame: Any) -> None:
    global _terminate_seen
    _terminate_seen = True


def notice_terminate() -> None:
    """Only where the program has no handler of its own, and only Python's main thread may."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_terminate)
        signal.siginterrupt(signal.SIGTERM, False)


def terminate_seen() -> bool:
    return _terminate_seen


class _LastWord:
    """Ends the process when the interpreter takes its modules apart: all that a program does at its
    end is done by then, and its streams are flushed."""

    def __init__(self) -> None:
        self.process = os.getpid()

    def __del__(
        self,
        getpid: Callable[[], int] = os.getpid,
        leave: Callable[[int], Any] = os._exit,
        flush: Callable[[None], Any] = ctypes.CDLL(None).fflush,
    ) -> None:
        if getpid() == self.process:
            flush(None)  # Of C's streams, which extension modules write to.
            leave(EXIT_NOT_FINISHED)


_last_word: Optional[_LastWord] = None


def tell_by_exit_code() -> None:
    """A program that ends from here on ends with EXIT_NOT_FINISHED, whatever its own code."""
    global _last_word
    if _last_word is None or _last_word.process != os.getpid():
        _last_word = _LastWord()


def watch_exceptions(on_exception: Callable[[BaseException], None]) -> None:
    """Hears of the exception that ends the program, before it is printed."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        try:
            on_exception(error)
        finally:
            before(kind, error, trace)

    sys.excepthook = hook
