"""A trial's folder and its share of the process's output, as its worker would make them. Mirrors
trial-helper/trial_files.h and output.h.

Fails: what cannot be made is said on stderr. Threads: one.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from jizi._session import say_line
from jizi._source import Assigned


def make_private_folder(folder: str) -> None:
    """With its parents, mode 0700; as it is, if it is there."""
    parent = os.path.dirname(folder)
    if parent != folder and not os.path.isdir(parent):
        make_private_folder(parent)
    try:
        os.mkdir(folder, 0o700)
    except OSError:
        pass  # A failure shows when a file is made in it.


def keep_params(assigned: Assigned) -> None:
    """params.json in the trial's folder."""
    make_private_folder(assigned.folder)
    path = os.path.join(assigned.folder, "params.json")
    text = json.dumps(assigned.params, sort_keys=True, separators=(",", ":")) + "\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(text.encode())
    except OSError as error:
        say_line(f"cannot write {path}: {error.strerror}")


def flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # Closed, or none.
            pass


def mark_output(mark: str, trial: int) -> None:
    """Into stdout and stderr, where they are pipes: here the output of this trial begins. mark:
    JIZI_OUTPUT_MARK; empty: nothing."""
    if not mark:
        return
    line = f"\x1ejizi-trial {mark} {trial}\n".encode()
    for file in (1, 2):
        try:
            # A file of the program's own is not its worker's to divide. In one piece: it is shorter
            # than what a pipe takes at once.
            if stat.S_ISFIFO(os.fstat(file).st_mode):
                os.write(file, line)
        except OSError:
            pass
