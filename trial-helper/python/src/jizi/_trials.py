"""jizi.trials(): the trials of this process, one after the other."""

from __future__ import annotations

import atexit
import os
from typing import Any, Iterator, Optional

from jizi._environment import connect_from_environment, read_environment
from jizi._leave import notice_terminate, watch_exceptions
from jizi._link import Link, Options
from jizi._outbox import Outbox
from jizi._session import say_line
from jizi._source import TrialSource, decode_assigned
from jizi._trial import Trial
from jizi._trial_files import flush_output, keep_params, mark_output
from jizi.v1 import types_pb2 as types


class Trials(Iterator[Trial]):
    """Asking for the next trial ends the one before."""

    def __init__(self, options: Options) -> None:
        env = read_environment()
        self._link = link = Link(options, env)
        self._current: Optional[Trial] = None
        if link.several_ranks and options.broadcast is None:
            raise ValueError(
                f"jizi: WORLD_SIZE is {env.world_size}, and rank 0 alone talks to the service: "
                "give jizi.trials a broadcast, a function that gives rank 0's bytes to every rank"
            )
        if env.endpoint:
            if options.notice_sigterm:
                notice_terminate()
            if link.talks:
                link.client = connect_from_environment(env.endpoint)
                link.outbox = Outbox(env.outbox)
                watch_exceptions(self._on_exception)
                atexit.register(self._at_exit)
        elif link.talks:
            say_line(
                "run by hand, without a service: parameters are the program's own, and nothing "
                "is recorded"
            )
        capabilities = types.Capabilities(
            stop=True,
            pause=options.can_pause,
            roll_back=options.can_roll_back,
            changeable=list(options.changeable),
        )
        self._source = TrialSource(link.client, env, capabilities, options.next_trial_wait_s)

    def __iter__(self) -> Trials:
        return self

    def __next__(self) -> Trial:
        link = self._link
        if link.forked:
            raise StopIteration  # The parent talks.
        if self._current is not None:
            self._current._finish()
            self._current = None
        assigned = None
        if link.talks and not link.unanswered:
            assigned = self._source.next()
        if link.several_ranks:
            data = link.share(assigned.encoded() if assigned is not None else b"null")
            if not link.talks:
                assigned = decode_assigned(data)
        if assigned is None:
            raise StopIteration
        flush_output()
        mark_output(link.env.output_mark, assigned.id)
        if link.talks and assigned.id > 0:
            keep_params(assigned)
        self._current = Trial(link, assigned)
        return self._current

    def _left_in_the_middle(self) -> None:
        """The program asks for trials anew: nobody said how the former one ended."""
        trial = self._current
        if trial is not None and not trial._ended:
            if not trial._stop:
                trial.fail(
                    "its program went on to other trials without ending it (an exception, or "
                    "a break): `with trial:` says where it ends"
                )
            trial._finish()

    def _on_exception(self, error: BaseException) -> None:
        if self._current is not None and not self._link.forked:
            self._current._end_with(error)

    def _at_exit(self) -> None:
        """A trial that the loop was left with: the exit code says to the worker how it ended."""
        if self._link.forked:
            return
        if self._current is not None:
            if self._link.env.made_up_worker:
                self._current._finish()  # Nobody watches this process.
            else:
                self._current._leave()
        if self._link.client is not None:
            self._link.client.close()


_process: Optional[Trials] = None  # A process has one worker's name, one lease and one outbox.


def trials(**options: Any) -> Trials:
    """The trials of this process. Options are those of jizi.Options, by name.

    Started by `jizi run` or `jizi worker` it talks to the service; run by hand it gives one trial,
    and says so once. Asked again in a process that a service started, it goes on where it was, with
    the options of the first time. ValueError: an environment that makes no sense, or WORLD_SIZE > 1
    without a broadcast."""
    global _process
    if _process is not None and _process._link.process == os.getpid():
        if _process._link.env.endpoint:
            _process._left_in_the_middle()
            return _process
    _process = Trials(Options(**options))
    return _process
