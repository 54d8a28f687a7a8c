"""The calls of a session (_session.py) and what their answers mean, all on the session's thread."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable

from jizi._session_state import Measured, SessionState
from jizi._wire import Error, from_value, may_come_back
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

CALL_DEADLINE_S = 10.0
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.1, 1.0
MAX_INTERNAL = 5  # Then the request is at fault, and is dropped.


class SessionCalls(SessionState):
    def _start(self, method: str, request: Any, then: Callable[[Any], None]) -> None:
        with self._changed:
            if self._closing:
                return
            self._unfinished += 1

        def done(result: Any) -> None:
            with self._changed:
                self._unfinished -= 1
                self._done.append(lambda: then(result))
                self._changed.notify_all()

        call = self._client.start(method, request, CALL_DEADLINE_S, done)
        with self._changed:
            self._calls = [*self._calls[-3:], call]  # At most one and a renewal are under way.
            closing = self._closing
        if closing:
            call.cancel()

    def _send(self) -> None:
        """Starts what is due, one numbered call at a time."""
        with self._changed:
            ended = self._closing or self._completed
        now = time.monotonic()
        if ended or self._lost or self._in_flight or now < self._retry_at:
            return
        if not self._attached:
            self._send_attach(now)
            return
        to_send = bool(self._sealed) or self._seal_next()
        # A report renews the lease, unless it is one that the service keeps putting off.
        put_off = to_send and self._sealed[0].sent
        if (put_off or not to_send) and not self._renewing and now >= self._renewal_due():
            self._renewing = True
            renew = service.RenewRequest(leases=[self._options.lease])
            self._start("Renew", renew, self._on_renewal)
        if not to_send:
            return
        front = self._sealed[0]
        front.sent = True
        self._in_flight = True
        self._sent_at = now
        if isinstance(front.request, service.ReportRequest):
            self._start("Report", front.request, self._on_report)
        elif isinstance(front.request, service.RegisterCheckpointRequest):
            self._start("RegisterCheckpoint", front.request, self._on_checkpoint)
        else:
            self._start("Complete", front.request, self._on_complete)

    def _send_attach(self, now: float) -> None:
        request = service.AttachRequest(
            lease=self._options.lease,
            worker=self._options.worker,
            capabilities=self._options.capabilities,
        )
        self._in_flight = True
        self._sent_at = now
        self._start("Attach", request, self._on_attach)

    def _heard(self, lease_s: float) -> None:
        """The lease holds from now."""
        self._heard_at = time.monotonic()
        if lease_s > 0:
            self._lease_s = lease_s

    def _answered(self, lease_s: float) -> None:
        """The service was there."""
        self._heard(lease_s)
        if self._away:
            self._away = False
            self._say("the service is back")
        self._backoff_s = self._retry_at = 0.0
        with self._changed:
            self._given_up_waiting = False

    def _go_away(self, error: Error) -> None:
        with self._changed:
            if self._closing:
                return  # Cancelled by ourselves.
        if not self._away:
            self._away = True
            where = f" in {self._outbox.path}" if self._outbox.path else ""
            self._say(
                f"the service is away ({error}); the training goes on, reports are kept{where}"
            )
        self._backoff_s = min(max(self._backoff_s * 2, FIRST_BACKOFF_S), LAST_BACKOFF_S)
        self._retry_at = time.monotonic() + self._backoff_s
        with self._changed:
            self._given_up_waiting = True
            self._changed.notify_all()

    def _on_report(self, result: Any) -> None:
        self._in_flight = False
        if isinstance(result, Error):
            self._on_error(result)
            return
        self._answered(result.lease_s)
        if not self._sealed:
            return  # The lease was lost meanwhile.
        measured = self._sealed[0].request.measurements  # type: ignore[union-attr]
        for rejected in result.rejected:
            step = measured[rejected.index].step if rejected.index < len(measured) else -1
            self._say(f"the service did not take the measurement of step {step}: {rejected.why}")
        self._hear(result.directive)
        self._pop_front()

    def _on_checkpoint(self, result: Any) -> None:
        self._in_flight = False
        if isinstance(result, Error):
            self._on_error(result)
        elif self._sealed:
            self._answered(result.lease_s)
            self._pop_front()

    def _on_complete(self, result: Any) -> None:
        self._in_flight = False
        if isinstance(result, Error):
            self._on_error(result)
        elif self._sealed:
            self._answered(0)
            self._pop_front()
            with self._changed:
                self._completed = True
                self._changed.notify_all()

    def _on_renewal(self, result: Any) -> None:
        self._renewing = False
        if self._lost:
            return
        if isinstance(result, Error):
            if may_come_back(result) or result.kind == "INTERNAL":
                self._go_away(result)
            else:
                self._lose(result)
            return
        if len(result.leases) != 1 or not result.leases[0].held:
            self._lose(Error("FAILED_PRECONDITION", "the lease was lost", "LEASE_LOST"))
            return
        self._heard(result.leases[0].lease_s)
        # What waits for another try says itself whether the service is back.
        if not self._sealed:
            self._answered(0)
        # Changes and roll-backs come with the next report's answer; an end is not to be waited for.
        directive = result.leases[0].directive
        if directive.WhichOneof("kind") in ("stop", "pause"):
            self._hear(directive)

    def _on_attach(self, result: Any) -> None:
        self._in_flight = False
        if isinstance(result, Error):
            if may_come_back(result) or result.kind == "INTERNAL":
                self._go_away(result)
            else:
                self._lose(result)
            return
        if len(result.held) != 1 or len(result.next_sequence) != 1:
            self._lose(Error("FAILED_PRECONDITION", "the lease was lost", "LEASE_LOST"))
            return
        self._attached = True
        self._answered(result.held[0].lease_s)
        following = result.next_sequence[0]
        # Acknowledged before, by whoever sent it.
        while self._sealed and self._sealed[0].sent and self._front_sequence() < following:
            self._pop_front()
        if not self._sealed:
            self._next_sequence = following
        elif self._front_sequence() != following:
            self._renumber(following)

    def _front_sequence(self) -> int:
        return self._sealed[0].request.sequence

    def _renumber(self, following: int) -> None:
        """Requests that nobody has sent get their numbers anew, and the file with them."""
        for sealed in self._sealed:
            sealed.request.sequence = following
            following += 1
        self._next_sequence = following
        self._rewrite_outbox()

    def _rewrite_outbox(self) -> None:
        saved = [
            sealed.request
            for sealed in self._sealed
            if isinstance(sealed.request, service.ReportRequest) and sealed.on_disk
        ]
        if self._outbox.bytes > 0 and not self._outbox.replace(saved):
            self._say(f"cannot write the outbox {self._outbox.path}: {self._outbox.error}")

    def _on_error(self, error: Error) -> None:
        """The service refuses, or is away."""
        if self._lost or not self._sealed:
            return
        front = self._sealed[0]
        if error.kind == "INTERNAL":
            front.refusals += 1
        if may_come_back(error) or (error.kind == "INTERNAL" and front.refusals < MAX_INTERNAL):
            self._go_away(error)
            return
        if error.code in ("SEQUENCE_GAP", "SEQUENCE_REUSED"):
            front.refusals += 1
            if front.refusals < MAX_INTERNAL:
                # Its number is another's, or the service went back to an older file: ask.
                self._attached = False
                return
        checkpoint = isinstance(front.request, service.RegisterCheckpointRequest)
        lost = error.code == "LEASE_LOST" or (error.code != "STALE_SEQUENCE" and not checkpoint)
        if error.kind == "NOT_FOUND" or (error.kind == "FAILED_PRECONDITION" and lost):
            self._lose(error)
            return
        if checkpoint:
            self._say_once(
                f"checkpoint {error.code}",
                "a checkpoint was not registered, the trial goes on without it (others refused for "
                f"the same reason are not said): {error}",
            )
        else:
            self._say_once(
                error.message, f"the service refused a request, which is dropped: {error}"
            )
        was_complete = isinstance(front.request, service.CompleteRequest)
        self._pop_front()
        self._attached = False  # Whether its number is used up the service says.
        if was_complete:
            with self._changed:
                self._complete_refused = True
            self._lose(error)

    def _lose(self, error: Error) -> None:
        """Nothing that this process says about the attempt counts any more."""
        self._lost = True
        self._say(f"its lease is lost, what comes now does not count: {error}")
        self._sealed.clear()
        self._sealed_bytes = 0
        self._outbox.clear()
        with self._changed:
            self._queue.clear()
            self._queued_reports = self._pending = 0
            self._reports_settled = self._reports
            self._told.lost = True
            self._told.why = f"the lease was lost: {error.message}"
            self._changed.notify_all()

    def _forget_unsent(self, back: int) -> None:
        """What was measured and saved on a branch that the service has rolled back. The front is
        the report whose answer says so; behind it stand reports alone, none of them sent."""
        items = reports = 0
        while len(self._sealed) > 1:
            last = self._sealed.pop()
            self._sealed_bytes -= last.request.ByteSize()
            self._next_sequence = last.request.sequence
            items += last.reports or 1
            reports += last.reports
        self._rewrite_outbox()
        with self._changed:
            kept = [
                item
                for item in self._queue
                if not isinstance(item, Measured)
                and not (isinstance(item, types.Checkpoint) and item.step > back)
            ]
            items += len(self._queue) - len(kept)
            reports += self._queued_reports
            self._queue = deque(kept)
            self._queued_reports = 0
        if items > 0:
            self._settle(items, reports)

    def _hear(self, directive: types.Directive) -> None:
        kind = directive.WhichOneof("kind")
        back = directive.go_on.roll_back_to if directive.go_on.HasField("roll_back_to") else None
        if back is not None:
            self._forget_unsent(back)
        with self._changed:
            self._told.stop = self._told.stop or kind == "stop"
            self._told.pause = self._told.pause or kind == "pause"
            for name, value in directive.go_on.set.items():
                self._told.set[name] = from_value(value)
            if back is not None:
                self._told.roll_back_to = back
            if directive.why:
                self._told.why = directive.why
            self._changed.notify_all()
