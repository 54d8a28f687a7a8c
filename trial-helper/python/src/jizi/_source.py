"""Where the trials of a process come from: the one that its worker leased for it (Attach), then
what the service suggests to that worker, or one by hand without a service. Mirrors
trial-helper/trial_source.h.

Fails: nothing is raised; what stands in the way is said on stderr, and then there is no trial.
Threads: one. Cost: blocks for the calls and their retries, bounded by the waits below.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Dict, Optional, Union

from jizi._checkpoint_file import CheckpointError, verify_checkpoint
from jizi._environment import Environment, folder_of
from jizi._leave import tell_by_exit_code, terminate_seen
from jizi._session import SessionOptions, say_line
from jizi._wire import Client, Error, JsonValue, from_params, may_come_back, utf8_text
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

ATTACH_DEADLINE_S = 5.0
SUGGEST_DEADLINE_S = 30.0  # A model may be fitted for it.
BETWEEN_TRIES_S = 0.2
FIRST_WAIT_S = 10.0  # Then the first trial starts without the service.
MAX_WHY_BYTES = 4096
MAX_GIVEN_UP = 3  # Trials in a row that could not start here.


@dataclass
class Assigned:
    """A trial to run."""

    id: int = 0  # 0 by hand.
    attempt: int = 0
    params: Dict[str, JsonValue] = field(default_factory=dict)
    folder: str = ""
    warm_start: str = ""
    start_step: int = 0
    last_step: int = -1  # The last one that counts already.
    session: Optional[SessionOptions] = None

    def encoded(self) -> bytes:
        """For the other ranks: everything but the session."""
        shown = {name: value for name, value in vars(self).items() if name != "session"}
        return json.dumps(shown).encode()


def decode_assigned(data: bytes) -> Optional[Assigned]:
    parsed = json.loads(data)
    return None if parsed is None else Assigned(**parsed)


def _sleep(seconds: float, deadline: float) -> bool:
    """False once the deadline has passed or the process is to end."""
    until = time.monotonic() + seconds
    while not terminate_seen() and (now := time.monotonic()) < deadline:
        if now >= until:
            return True
        time.sleep(min(until - now, deadline - now, 0.05))
    return False


class TrialSource:
    def __init__(
        self,
        client: Optional[Client],
        env: Environment,
        capabilities: types.Capabilities,
        next_wait_s: float,
    ) -> None:
        self._client = client
        self._env = env
        self._capabilities = capabilities
        self._next_wait_s = next_wait_s
        self._first_done = False
        self._lease_s = 0.0  # As the worker asked for; 0: the service's default.
        self._worker_sequence: Optional[int] = None

    def next(self) -> Optional[Assigned]:
        if self._client is None:
            return self._by_hand()
        if terminate_seen():
            return None
        first = not self._first_done
        self._first_done = True
        if first and self._env.lease is not None:
            assigned = self._first(self._client, self._env.lease)
            if assigned is not None or self._env.one_trial:
                return assigned
        elif self._env.one_trial and not first:
            return None
        return self._suggested(self._client)

    def _by_hand(self) -> Optional[Assigned]:
        if self._first_done:
            return None
        self._first_done = True
        return Assigned(
            params=dict(self._env.params),
            folder=self._env.trial_folder or os.getcwd(),
            warm_start=self._env.warm_start,
            start_step=self._env.warm_start_step,
        )

    def _options(self, lease: types.Lease) -> SessionOptions:
        return SessionOptions(lease, self._env.worker, self._capabilities)

    def _attach(
        self, client: Client, lease: types.Lease, deadline: float
    ) -> Union[service.AttachResponse, Error]:
        request = service.AttachRequest(
            lease=lease, worker=self._env.worker, capabilities=self._capabilities
        )
        while True:
            try:
                response: service.AttachResponse = client.call("Attach", request, ATTACH_DEADLINE_S)
                return response
            except Error as error:
                if not may_come_back(error) or not _sleep(BETWEEN_TRIES_S, deadline):
                    return error

    def _first(self, client: Client, lease: types.Lease) -> Optional[Assigned]:
        """The trial that the worker leased for this process."""
        env = self._env
        session = self._options(lease)
        assigned = Assigned(
            id=lease.trial,
            attempt=lease.attempt,
            params=dict(env.params),
            folder=env.trial_folder or folder_of(env.trials_folder, lease.trial),
            warm_start=env.warm_start,
            start_step=env.warm_start_step,
            session=session,
        )
        attached = self._attach(client, lease, time.monotonic() + FIRST_WAIT_S)
        if isinstance(attached, Error) and may_come_back(attached):
            fresh = not assigned.warm_start
            start = "" if fresh else f", from {assigned.warm_start}, whose digest nobody could tell"
            say_line(f"the service is away ({attached}); the trial starts without it{start}")
            return assigned
        if isinstance(attached, Error) or len(attached.held) != 1:
            why = attached if isinstance(attached, Error) else "the lease was lost"
            say_line(f"trial {assigned.id} is not this program's to run: {why}")
            return None
        held = attached.held[0]
        assigned.params = from_params(held.trial.params)
        assigned.last_step = attached.last_step[0] if len(attached.last_step) == 1 else -1
        self._lease_s = held.lease_s
        if held.lease_s > 0:
            session.lease_s = held.lease_s
        session.next_sequence = attached.next_sequence[0]
        # The service knows the checkpoint's size and digest; the worker's word is its path alone.
        given, assigned.warm_start, assigned.start_step = assigned.warm_start, "", 0
        if held.HasField("warm_start") and not self._prepare(client, assigned, held.warm_start):
            return None
        if given and os.path.normpath(given) != assigned.warm_start:
            says = assigned.warm_start or "that it starts fresh"
            say_line(
                f"trial {assigned.id}: JIZI_WARM_START names {given}, but the service says "
                f"{says}: that counts"
            )
        return assigned

    def _prepare(self, client: Client, assigned: Assigned, warm_start: types.WarmStart) -> bool:
        """Finds and checks the checkpoint to start from; a trial without it is failed here."""
        own = warm_start.trial in (0, assigned.id)
        folder = assigned.folder if own else folder_of(self._env.trials_folder, warm_start.trial)
        try:
            assigned.warm_start = verify_checkpoint(folder, warm_start.checkpoint)
            assigned.start_step = warm_start.checkpoint.step
            return True
        except CheckpointError as error:
            self._give_up(
                client, assigned, f"it cannot start from its checkpoint on this worker: {error}"
            )
            return False

    def _give_up(self, client: Client, assigned: Assigned, why: str) -> None:
        say_line(f"trial {assigned.id} failed: {why}")
        if assigned.session is None:
            return
        request = service.CompleteRequest(
            lease=assigned.session.lease, sequence=assigned.session.next_sequence or 1
        )
        request.failed.why = utf8_text(why, MAX_WHY_BYTES)  # It may hold a path.
        try:
            client.call("Complete", request, ATTACH_DEADLINE_S)
        except Error as error:
            say_line(str(error))
            if may_come_back(error):
                tell_by_exit_code()  # Its worker must not take it for finished.

    def _suggest(self, client: Client) -> service.SuggestResponse:
        if self._worker_sequence is None:
            request = service.AttachRequest(worker=self._env.worker)
            request.lease.study = self._env.study
            attached = client.call("Attach", request, ATTACH_DEADLINE_S)
            self._worker_sequence = attached.next_worker_sequence
        suggest = service.SuggestRequest(
            study=self._env.study,
            worker=self._env.worker,
            sequence=self._worker_sequence,
            count=1,
            lease_s=self._lease_s,
        )
        try:
            answer: service.SuggestResponse = client.call("Suggest", suggest, SUGGEST_DEADLINE_S)
        except Error as error:
            if not may_come_back(error):
                self._worker_sequence = None  # Perhaps the number was another's: ask.
            raise
        # A Wait gave nothing and its number may be used again: a late copy of that call can then
        # take no trial that nobody works on.
        if answer.WhichOneof("answer") != "wait":
            self._worker_sequence = suggest.sequence + 1
        return answer

    def _accept(self, client: Client, assignment: service.Assignment) -> Optional[Assigned]:
        lease = assignment.lease
        session = self._options(lease)
        assigned = Assigned(
            id=assignment.trial.id,
            attempt=lease.attempt,
            params=from_params(assignment.trial.params),
            folder=folder_of(self._env.trials_folder, assignment.trial.id),
            session=session,
        )
        if assignment.lease_s > 0:
            session.lease_s = assignment.lease_s
        # Says what this program can do. If the service goes away now, the session says it later.
        attached = self._attach(client, lease, time.monotonic() + FIRST_WAIT_S)
        if isinstance(attached, Error):
            if not may_come_back(attached):
                say_line(str(attached))
                return None
        elif len(attached.next_sequence) == 1:
            session.next_sequence = attached.next_sequence[0]
            assigned.last_step = attached.last_step[0] if len(attached.last_step) == 1 else -1
        warm = assignment.HasField("warm_start")
        if warm and not self._prepare(client, assigned, assignment.warm_start):
            return None
        return assigned

    def _suggested(self, client: Client) -> Optional[Assigned]:
        deadline = time.monotonic() + self._next_wait_s
        refused = given_up = 0
        while given_up < MAX_GIVEN_UP:
            wait_s = BETWEEN_TRIES_S
            try:
                answer = self._suggest(client)
                kind = answer.WhichOneof("answer")
                if kind == "finished":
                    return None
                if kind == "trials" and answer.trials.assignments:
                    assigned = self._accept(client, answer.trials.assignments[0])
                    if assigned is not None:
                        return assigned
                    given_up += 1
                else:
                    wait_s = max(wait_s, answer.wait.retry_after_s)
            except Error as error:
                if not may_come_back(error):
                    refused += 1
                    if refused > 1:
                        say_line(f"no trial: {error}")
                        return None
            # Beyond the deadline the worker asks on, without this process.
            if not _sleep(wait_s, deadline):
                return None
        return None
