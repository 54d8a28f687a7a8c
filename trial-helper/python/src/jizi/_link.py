"""What outlives one trial: how the process was started, its options, and the way to the service."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Callable, Mapping, Optional, Sequence

from jizi._environment import Environment
from jizi._outbox import Outbox
from jizi._session import Session
from jizi._wire import Client, JsonValue


@dataclass(frozen=True)
class Options:
    """defaults: parameters where the trial has none, above all when run by hand.
    broadcast: with several ranks (WORLD_SIZE > 1), called by every rank at once: rank 0's bytes
    become everyone's. changeable: parameters that this program can change while running.
    can_pause: it saves checkpoints and starts from warm_start. can_roll_back: it obeys
    roll_back_to. next_trial_wait_s: how long to ask for a trial while none is ready; then the
    worker asks on. resources_every_s: throughput, memory and CPU time travel with a report that
    often, as metrics jizi/...; 0: never. notice_sigterm: SIGTERM makes should_stop true where a
    service started this program and it has no handler of its own; the worker kills 10 s later."""

    defaults: Mapping[str, JsonValue] = field(default_factory=dict)
    broadcast: Optional[Callable[[bytes], bytes]] = None
    changeable: Sequence[str] = ()
    can_pause: bool = False
    can_roll_back: bool = False
    report_wait_s: float = 1.0
    flush_wait_s: float = 60.0
    next_trial_wait_s: float = 60.0
    resources_every_s: float = 60.0
    notice_sigterm: bool = True


class Link:
    def __init__(self, options: Options, env: Environment) -> None:
        self.options = options
        self.env = env
        self.client: Optional[Client] = None  # None without a service, and on ranks other than 0.
        self.outbox = Outbox("")
        self.process = os.getpid()  # A forked child has no threads of ours.
        self.read_params = self.said_unread = False
        self.unanswered = False  # A trial could not be completed: take no other.

    @property
    def several_ranks(self) -> bool:
        return self.env.world_size > 1

    @property
    def talks(self) -> bool:
        return self.env.rank == 0

    @property
    def forked(self) -> bool:
        return os.getpid() != self.process

    def share(self, data: bytes) -> bytes:
        """Rank 0's bytes become everyone's; by itself with one rank."""
        if self.several_ranks and self.options.broadcast is not None:
            return bytes(self.options.broadcast(data))
        return data


__all__ = ["Link", "Options", "Session"]
