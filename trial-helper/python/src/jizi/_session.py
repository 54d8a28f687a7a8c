"""One attempt of a trial, as its program's side of the wire keeps it: what waits to be sent, the
one call in flight, the lease, the outbox, and what the service has said. Mirrors
trial-helper/session.h.

  report, add_checkpoint, complete --> queue --> sealed requests (numbered) --> one call in flight
                                                       '--> outbox file, while the service is away

A sealed request that was sent is never changed and is sent again until it is answered
(docs/contracts.md, 12); one that was never sent may still get another number. Checkpoints last
while the service is away: the outbox holds reports only.
Fails: nothing is raised; refusals are said on stderr, and a lost lease shows in take().
Threads: the caller's, one at a time; one of its own that decides, writes the files and never waits
for a call; gRPC's hand over what was answered. A process that forked must not touch it in the
child.
"""

from __future__ import annotations

import threading
import time
from typing import Optional

from jizi._outbox import Outbox
from jizi._session_calls import SessionCalls
from jizi._session_state import HANGS_S, Measured, SessionOptions, Told, say_line
from jizi._wire import Client
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

NEVER_S = 3600.0

__all__ = ["Session", "SessionOptions", "Told", "say_line"]


class Session(SessionCalls):
    def __init__(self, client: Client, outbox: Outbox, options: SessionOptions) -> None:
        super().__init__(client, outbox, options)
        self._thread = threading.Thread(target=self._run, name="jizi-session", daemon=True)
        self._thread.start()

    # ---- the program's side ----

    def report(self, measurement: types.Measurement, total_steps: Optional[int]) -> int:
        """Returns the report's number, from 1."""
        with self._changed:
            self._reports += 1
            if self._told.lost or self._completed:
                self._reports_settled = self._reports
            elif self._told.roll_back_to is not None:
                self._reports_settled += 1  # From before the program heard: it does not count.
            else:
                self._pending += 1
                self._queued_reports += 1
                self._queue.append(Measured(measurement, total_steps))
                self._changed.notify_all()
            return self._reports

    def add_checkpoint(self, checkpoint: types.Checkpoint) -> None:
        with self._changed:
            back = self._told.roll_back_to
            if self._told.lost or self._completed or (back is not None and checkpoint.step > back):
                return
            self._pending += 1
            self._queue.append(checkpoint)
            self._changed.notify_all()

    def wait_for_answer(self, report: int, at_most_s: float) -> None:
        """Where an earlier wait was in vain and nothing was answered since, it does not wait: an
        outage costs one wait, not one a step."""
        deadline = time.monotonic() + at_most_s
        with self._changed:
            while self._reports_settled < report and not self._given_up_waiting:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._given_up_waiting = True
                else:
                    self._changed.wait(left)

    def take(self) -> Told:
        with self._changed:
            told = self._told
            self._told = Told(lost=told.lost, why=told.why if told.lost else "")
            return told

    def flush(self, deadline: float) -> bool:
        """Everything answered? Waits at most until the deadline (of time.monotonic)."""
        with self._changed:
            while self._pending > 0:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def complete(self, request: service.CompleteRequest, deadline: float) -> bool:
        """After all that waits. False if the service did not answer by the deadline, or refused
        this very call: then the worker completes it, by the exit code. True also where the lease is
        lost: nobody waits for its end."""
        with self._changed:
            if self._told.lost:
                return True
            self._pending += 1
            self._queue.append(request)
            self._changed.notify_all()
            while not self._completed and not self._told.lost:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            return self._completed or (self._told.lost and not self._complete_refused)

    def close(self) -> None:
        """Ends at once: what was not sent is in the outbox."""
        with self._changed:
            self._closing = True
            calls = list(self._calls)
            self._changed.notify_all()
        for call in calls:
            call.cancel()
        self._thread.join()

    # ---- the session's thread ----

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._done and not self._closing:
                    left = self._next_wake() - time.monotonic()
                    if left <= 0:
                        break
                    self._changed.wait(left)
                while self._closing and not self._done and self._unfinished > 0:
                    self._changed.wait()
                done, self._done = self._done, []
                if self._closing and not done:
                    break
            for handle in done:
                handle()
            with self._changed:
                spool = self._must_spool()
            if spool:
                self._spool()
            self._send()
        # What was not answered is for the worker to send: leave it on disk, all of it.
        if not self._lost:
            self._spool()
        self._outbox.close()

    def _next_wake(self) -> float:
        now = time.monotonic()
        if self._lost or self._completed:
            return now + NEVER_S
        if self._must_spool():
            return now
        if self._in_flight:
            quiet = self._queued_reports == 0 and not self._has_unsaved()
            return now + NEVER_S if quiet else self._sent_at + HANGS_S
        if not self._attached or self._sealed or self._queue:
            return self._retry_at
        return now + NEVER_S if self._renewing else self._renewal_due()
