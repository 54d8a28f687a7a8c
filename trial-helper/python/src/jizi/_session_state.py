"""What a session (_session.py) holds, and how what waits becomes numbered requests and a file."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Union

from jizi._outbox import MAX_BYTES, Outbox
from jizi._wire import Client, JsonValue, Method
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

HANGS_S = 1.0  # A call without an answer for so long: write to disk.
MAX_QUEUE = 1000  # Measurements in memory only, while the service is there.
MAX_MEASUREMENTS = 1000  # In one request (proto/README.md).
MAX_REQUEST_BYTES = 1 << 20
MAX_LINES = 20  # On stderr for one trial.

Request = Union[service.ReportRequest, service.RegisterCheckpointRequest, service.CompleteRequest]


def say_line(line: str) -> None:
    """For the person who runs the program."""
    try:
        print(f"jizi: {line}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # No stderr, or a closed one.
        pass


@dataclass
class Told:
    """What the service has said and nobody has taken yet."""

    stop: bool = False
    pause: bool = False
    set: Dict[str, JsonValue] = field(default_factory=dict)
    roll_back_to: Optional[int] = None
    why: str = ""
    lost: bool = False  # The lease: what is measured from here on counts nowhere.


@dataclass
class SessionOptions:
    lease: types.Lease
    worker: str
    capabilities: types.Capabilities
    # From Attach; without it (the service was away) the session attaches by itself.
    next_sequence: Optional[int] = None
    lease_s: float = 60.0


@dataclass
class Measured:
    measurement: types.Measurement
    total_steps: Optional[int]


@dataclass
class Sealed:
    request: Request
    reports: int = 0  # Measurements in it that somebody may wait for.
    on_disk: bool = False
    sent: bool = False
    refusals: int = 0  # Internal errors so far.

    @property
    def is_report(self) -> bool:
        return isinstance(self.request, service.ReportRequest)


class SessionState:
    def __init__(self, client: Client, outbox: Outbox, options: SessionOptions) -> None:
        self._client = client
        self._outbox = outbox
        self._options = options
        # Guarded by _changed's lock.
        self._changed = threading.Condition()
        self._queue: Deque[Any] = deque()
        self._done: List[Callable[[], None]] = []  # Of calls, for the session's thread.
        self._calls: List[Method] = []
        self._unfinished = 0
        self._queued_reports = 0
        self._reports = 0
        self._reports_settled = 0
        self._pending = 0  # Items not yet answered.
        self._given_up_waiting = False
        self._completed = False
        self._complete_refused = False
        self._closing = False
        self._told = Told()
        # Of the session's thread alone.
        self._sealed: Deque[Sealed] = deque()
        self._sealed_bytes = 0
        self._attached = options.next_sequence is not None
        self._next_sequence = options.next_sequence or 1
        self._in_flight = self._renewing = self._away = self._lost = False
        self._overflow_said = self._outbox_broken = False
        self._sent_at = self._retry_at = 0.0
        self._heard_at = time.monotonic()
        self._lease_s = options.lease_s
        self._backoff_s = 0.0
        self._lines_said = 0
        self._codes_said: Set[str] = set()
        self._take_found()

    def _take_found(self) -> None:
        """What an earlier process of the same attempt left (a wrapper that starts it again)."""
        for request in self._outbox.found:
            if request.lease.token != self._options.lease.token:
                continue
            if request.sequence < (self._options.next_sequence or 1):
                continue
            self._sealed.append(Sealed(request, on_disk=True, sent=True))
            self._sealed_bytes += request.ByteSize()
            self._next_sequence = request.sequence + 1
            self._pending += 1
        # The answer to Attach says where the sequence stands; a gap is closed there too.
        if self._sealed:
            self._attached = False

    def _settle(self, items: int, reports: int) -> None:
        with self._changed:
            self._pending -= items
            self._reports_settled += reports
            self._changed.notify_all()

    def _pop_front(self) -> None:
        """It was answered, or is not to be sent any more."""
        front = self._sealed.popleft()
        if front.is_report:
            self._sealed_bytes -= front.request.ByteSize()
        if not self._sealed:
            self._outbox.clear()
        self._settle(front.reports or 1, front.reports)

    def _renewal_due(self) -> float:
        return max(self._heard_at + self._lease_s / 3, self._retry_at)

    def _must_spool(self) -> bool:
        if self._lost or self._completed:
            return False
        hangs = self._in_flight and time.monotonic() - self._sent_at >= HANGS_S
        if (self._away or hangs) and self._has_unsaved():
            return True
        full = self._queued_reports >= MAX_QUEUE
        return self._queued_reports > 0 and (self._away or hangs or full)

    def _has_unsaved(self) -> bool:
        """Not asked again of an outbox that cannot be written."""
        return not self._outbox_broken and any(
            sealed.is_report and not sealed.on_disk for sealed in self._sealed
        )

    def _seal_reports(self) -> bool:
        """Measurements at the front of the queue become one numbered request."""
        request = service.ReportRequest()
        dropped = size = 0
        with self._changed:
            while self._queue and isinstance(self._queue[0], Measured):
                if len(request.measurements) >= MAX_MEASUREMENTS or size >= MAX_REQUEST_BYTES:
                    break
                item = self._queue.popleft()
                self._queued_reports -= 1
                if item.total_steps is not None:
                    request.total_steps = item.total_steps
                if self._sealed_bytes > MAX_BYTES:
                    dropped += 1
                else:
                    size += item.measurement.ByteSize()
                    request.measurements.append(item.measurement)
        if dropped > 0:
            self._settle(dropped, dropped)
            if not self._overflow_said:
                self._overflow_said = True
                self._say(
                    "more than 32 MiB of reports wait for the service; what comes now is dropped"
                )
        if not request.measurements:
            return False
        request.catching_up = self._away
        self._seal(request, len(request.measurements))
        self._sealed_bytes += request.ByteSize()
        return True

    def _seal(self, request: Request, reports: int = 0) -> None:
        request.lease.CopyFrom(self._options.lease)
        request.sequence = self._next_sequence
        self._next_sequence += 1
        self._sealed.append(Sealed(request, reports))

    def _seal_next(self) -> bool:
        """The next thing in the queue becomes a numbered request."""
        if self._seal_reports():
            return True
        with self._changed:
            if not self._queue or isinstance(self._queue[0], Measured):
                return False
            item = self._queue.popleft()
        if isinstance(item, types.Checkpoint):
            item = service.RegisterCheckpointRequest(checkpoint=item)
        self._seal(item)
        return True

    def _spool(self) -> None:
        """All that was measured goes to the outbox; what else waits is for the service."""
        others: List[Any] = []
        while True:
            while self._seal_reports():
                pass
            with self._changed:
                if not self._queue:
                    break
                if not isinstance(self._queue[0], Measured):
                    others.append(self._queue.popleft())
        with self._changed:
            self._queue.extendleft(reversed(others))
        unsaved = [
            sealed.request
            for sealed in self._sealed
            if isinstance(sealed.request, service.ReportRequest) and not sealed.on_disk
        ]
        if not unsaved:
            return
        if not self._outbox.append(unsaved):
            if not self._outbox_broken:
                self._outbox_broken = True
                self._say(
                    f"cannot write the outbox {self._outbox.path}: {self._outbox.error}; "
                    "reports stay in memory alone"
                )
            return
        for sealed in self._sealed:
            sealed.on_disk = True  # Or is no report.

    def _say(self, line: str) -> None:
        if self._lines_said == MAX_LINES:
            say_line("more of the kind is not said for this trial")
        if self._lines_said < MAX_LINES:
            say_line(f"trial {self._options.lease.trial}: {line}")
        self._lines_said += 1

    def _say_once(self, code: str, line: str) -> None:
        """Of refusals that come back with every request of the kind."""
        if code not in self._codes_said:
            self._codes_said.add(code)
            self._say(line)
