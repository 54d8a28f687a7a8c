"""A program's side of the file JIZI_OUTBOX: reports that the service has not acknowledged, appended
and fsynced, safe from kill -9. Its format is proto/outbox_file.h's: each message after its length.

Fails: append and replace return False with the reason in `error`; the file holds what it held.
Threads: one at a time. Cost: one write and one fsync a call.
"""

from __future__ import annotations

import os
import stat
from typing import List, Optional, Sequence, Tuple

from google.protobuf.message import DecodeError

from jizi.v1 import tune_service_pb2

MAX_BYTES = 32 << 20  # What comes after is dropped, and that is said.


def _delimited(requests: Sequence[tune_service_pb2.ReportRequest]) -> bytes:
    parts: List[bytes] = []
    for request in requests:
        body = request.SerializeToString()
        length = len(body)
        while length > 0x7F:
            parts.append(bytes([length & 0x7F | 0x80]))
            length >>= 7
        parts.append(bytes([length]))
        parts.append(body)
    return b"".join(parts)


def _length(data: bytes, at: int) -> Optional[Tuple[int, int]]:
    """A varint and where it ends; None where the data ends before."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            return None
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return None


def read_outbox(path: str) -> Tuple[List[tune_service_pb2.ReportRequest], int, bool]:
    """The whole reports of a file, their bytes, and whether a torn tail follows. What is not there,
    or no ordinary file, reads as empty."""
    requests: List[tune_service_pb2.ReportRequest] = []
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return requests, 0, False
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return requests, 0, False
        data = stream.read()
    whole = 0
    while whole < len(data):
        found = _length(data, whole)
        if found is None or found[1] + found[0] > len(data):
            break
        try:
            body = data[found[1] : found[1] + found[0]]
            requests.append(tune_service_pb2.ReportRequest.FromString(body))
        except DecodeError:
            break
        whole = found[1] + found[0]
    return requests, whole, whole != len(data)


class Outbox:
    def __init__(self, path: str) -> None:
        """An empty path: no file, nothing is kept. What the file holds stays, but a torn tail."""
        self.path = path
        self.error = ""
        self.bytes = 0
        self.found: List[tune_service_pb2.ReportRequest] = []
        self._file = -1
        if not path:
            return
        self.found, self.bytes, torn = read_outbox(path)
        if torn and self._open():
            try:
                os.ftruncate(self._file, self.bytes)
            except OSError as error:
                self.error = str(error.strerror)

    def append(self, requests: Sequence[tune_service_pb2.ReportRequest]) -> bool:
        if not self.path or not requests:
            return True
        return self._open() and self._write(_delimited(requests))

    def replace(self, requests: Sequence[tune_service_pb2.ReportRequest]) -> bool:
        """Written beside it and renamed: a kill in between leaves one or the other whole."""
        if not self.path:
            return True
        fresh = Outbox("")
        fresh.path = self.path + ".new"
        try:
            if not fresh._open():
                raise OSError(0, fresh.error)
            os.ftruncate(fresh._file, 0)
            if not fresh._write(_delimited(requests)):
                raise OSError(0, fresh.error)
            os.rename(fresh.path, self.path)
        except OSError as error:
            self.error = str(error.strerror)
            fresh.close()
            return False
        self.close()
        self._file, self.bytes = fresh._file, fresh.bytes
        return True

    def clear(self) -> None:
        if not self.path or self.bytes == 0 or not self._open():
            return
        try:
            os.ftruncate(self._file, 0)
            self.bytes = 0
        except OSError as error:
            self.error = str(error.strerror)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> bool:
        if self._file >= 0:
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            self.error = str(error.strerror)
        return self._file >= 0

    def _write(self, data: bytes) -> bool:
        """After what is there; a failure leaves at most a torn tail, which the next overwrites."""
        try:
            written = 0
            while written < len(data):
                count = os.pwrite(self._file, data[written:], self.bytes + written)
                if count <= 0:
                    raise OSError(0, "nothing was written")
                written += count
            os.fsync(self._file)
        except OSError as error:
            self.error = str(error.strerror)
            try:
                os.ftruncate(self._file, self.bytes)
            except OSError:
                self.error += " (and the torn tail stays)"
            return False
        self.bytes += len(data)
        return True
