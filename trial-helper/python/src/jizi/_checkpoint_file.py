"""Files of checkpoints: durable, digested, and nowhere but beneath the trial's folder. No component
of a path may be a link (docs/contracts.md, 26). Mirrors trial-helper/checkpoint_file.h.

Fails: CheckpointError naming the path. Threads: one at a time for one folder.
Cost: reads the file once for its digest.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import contextmanager
from typing import Callable, Iterator, Tuple

from jizi.v1 import types_pb2


class CheckpointError(Exception):
    pass


def _file_error(what: str, path: str, error: OSError) -> CheckpointError:
    text = f"{what} {path}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text += "; make room on that disk; the older checkpoint is kept"
    elif error.errno in (errno.ELOOP, errno.ENOTDIR):
        text += "; a checkpoint's path may hold no links"
    return CheckpointError(text)


@contextmanager
def _beneath(folder: str, path: str) -> Iterator[Tuple[int, str, str]]:
    """The folder that a file stands in, opened link by link; its name there; its relative path."""
    relative = os.path.normpath(path)
    if os.path.isabs(path):
        relative = os.path.relpath(relative, os.path.normpath(folder))
    parts = relative.split(os.sep)
    if parts[0] in ("..", ".") or path.endswith(os.sep):
        raise CheckpointError(
            f"the checkpoint {path} does not lie beneath the trial's folder {folder}; "
            "write it beneath trial.directory"
        )
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        at = os.open(folder, flags)
    except OSError as error:
        raise _file_error("cannot open the trial's folder", folder, error) from None
    try:
        for part in parts[:-1]:
            try:
                inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=at)
            except OSError as error:
                raise _file_error("cannot open the folder of", path, error) from None
            os.close(at)
            at = inner
        yield at, parts[-1], relative
    finally:
        os.close(at)


@contextmanager
def _open_file(at: int, name: str, relative: str) -> Iterator[int]:
    # Not blocking: a pipe of that name must not hold the training run.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = os.open(name, flags, dir_fd=at)
    except OSError as error:
        raise _file_error("cannot open", relative, error) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise CheckpointError(f"{relative} is no ordinary file; write it as one file")
        yield file
    finally:
        os.close(file)


def _digest(file: int, relative: str) -> types_pb2.Checkpoint:
    digest = hashlib.sha256()
    size = 0
    try:
        while block := os.pread(file, 1 << 20, size):
            digest.update(block)
            size += len(block)
    except OSError as error:
        raise _file_error("cannot read", relative, error) from None
    return types_pb2.Checkpoint(path=relative, bytes=size, sha256=digest.hexdigest())


def _make_durable(at: int, name: str, relative: str, step: int) -> types_pb2.Checkpoint:
    with _open_file(at, name, relative) as file:
        try:
            os.fsync(file)
        except OSError as error:
            raise _file_error("cannot sync", relative, error) from None
        checkpoint = _digest(file, relative)
    if checkpoint.bytes == 0:
        raise CheckpointError(
            f"the checkpoint {relative} is empty; see that its writer succeeds, or raises"
        )
    checkpoint.step = step
    return checkpoint


def _unlink(name: str, at: int) -> None:
    try:
        os.unlink(name, dir_fd=at)
    except OSError:
        pass


def _write_and_rename(
    folder: str, name: str, step: int, writer: Callable[[str], object]
) -> types_pb2.Checkpoint:
    with _beneath(folder, f"checkpoints/.{name}.tmp") as (at, temporary, relative):
        # What a killed attempt left there; also a link that somebody put there.
        _unlink(temporary, at)
        try:
            try:
                writer(os.path.join(folder, relative))
            except Exception as error:  # Whatever a program's writer raises.
                why = f"its writer raised {type(error).__name__}: {error}"
                raise CheckpointError(why) from error
            checkpoint = _make_durable(at, temporary, relative, step)
            disk = os.fstatvfs(at)
            if disk.f_blocks > 0 and disk.f_bavail == 0:
                # Streams of C++ swallow ENOSPC (torch's): not to be trusted on a full disk.
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise _file_error("cannot trust", relative, full)
            try:
                os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
                os.fsync(at)
            except OSError as error:
                raise _file_error("cannot rename", relative, error) from None
        except BaseException:
            _unlink(temporary, at)
            raise
    checkpoint.path = f"checkpoints/{name}"
    return checkpoint


def write_checkpoint(
    folder: str, step: int, attempt: int, writer: Callable[[str], object]
) -> types_pb2.Checkpoint:
    """Lets the writer fill a temporary file, syncs it, and renames it to checkpoints/<name>."""
    inside = os.path.join(folder, "checkpoints")
    try:
        os.makedirs(folder, exist_ok=True)
        os.mkdir(inside, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise _file_error("cannot make", inside, error) from None
    # Never over a registered one: its digest would no longer be right.
    stem = f"step-{step}-attempt-{attempt}"
    name = stem
    again = 2
    while os.path.lexists(os.path.join(inside, name)):
        name = f"{stem}-{again}"
        again += 1
    return _write_and_rename(folder, name, step, writer)


def adopt_checkpoint(folder: str, step: int, path: str) -> types_pb2.Checkpoint:
    """A file that is there already: path beneath the folder, absolute or relative to it."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise CheckpointError(
            f"the checkpoint's path {path!r} is no UTF-8; the service could not be told of it: "
            "use another name"
        ) from None
    with _beneath(folder, path) as (at, name, relative):
        checkpoint = _make_durable(at, name, relative, step)
        os.fsync(at)
    return checkpoint


def verify_checkpoint(folder: str, checkpoint: types_pb2.Checkpoint) -> str:
    """Is the file there, of this size and digest? Its absolute path."""
    with _beneath(folder, checkpoint.path) as (at, name, relative):
        with _open_file(at, name, relative) as file:
            found = _digest(file, relative)
    if (found.bytes, found.sha256) != (checkpoint.bytes, checkpoint.sha256):
        raise CheckpointError(
            f"the checkpoint {folder}/{relative} is not the one that was registered "
            f"({found.bytes} bytes, registered {checkpoint.bytes}); restore it, or retry the trial "
            "afresh"
        )
    return os.path.join(folder, relative)
