"""A trial while its program works on it: parameters in, measurements out, directives back."""

from __future__ import annotations

import json
import math
import operator
import os
import time
import traceback
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Callable, Dict, Mapping, Optional, SupportsFloat, Type, Union

from jizi._checkpoint_file import CheckpointError, adopt_checkpoint, write_checkpoint
from jizi._leave import tell_by_exit_code, terminate_seen
from jizi._link import Link
from jizi._resources import ResourceMeter
from jizi._session import Session, say_line
from jizi._source import Assigned
from jizi._trial_files import flush_output
from jizi._wire import JsonValue, utf8_text
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

# What the service takes of a measurement; it refuses the whole request for more (proto/README.md),
# and with it the good values that travel along.
MAX_NAME_BYTES = 256
MAX_METRICS = 1000
# Far below what a request may hold; of a longer reason the service keeps the end.
MAX_WHY_BYTES = 1 << 20
# After SIGTERM the worker's grace time runs: what is not sent by then is in the outbox.
FLUSH_AT_TERMINATE_S = 3.0

Writer = Callable[[str], object]


class Infeasible(Exception):
    """Raise it where a trial's parameters can never work; its text is the reason."""


@dataclass(frozen=True)
class GradientStatistics:
    """For the batch-size estimator: squared gradient norms of a small and a big batch."""

    small_batch_norm_squared: float
    big_batch_norm_squared: float
    small_batch_size: float
    big_batch_size: float


@dataclass
class Shown:
    """What a report's result shows."""

    stop: bool = False
    pause: bool = False
    by_signal: bool = False
    set: Dict[str, JsonValue] = field(default_factory=dict)
    roll_back_to: Optional[int] = None
    why: str = ""


class ReportResult:
    """What the service answered to a report. Asking waits for the answer, at most report_wait_s,
    then goes on: an answer that comes later shows in the result of the next report."""

    def __init__(self, trial: Trial, report: int, shown: Shown, settled: bool) -> None:
        self._trial = trial
        self._report = report  # To wait for; 0: not sent.
        self._shown = shown
        self._settled = settled

    @property
    def should_stop(self) -> bool:
        """Stop, Pause, SIGTERM or a lost lease: save a checkpoint if you like, leave the loop."""
        link = self._trial._link
        if self._settle().stop:
            return True
        # With several ranks all must leave at the same step: only what was broadcast counts.
        if link.several_ranks or not terminate_seen():
            return False
        self._trial._left_by_signal = True
        self._shown.why = "this process is to end (SIGTERM)"
        return True

    @property
    def should_pause(self) -> bool:
        """A checkpoint is expected; the trial goes on from it later."""
        return self._settle().pause

    @property
    def changes(self) -> Dict[str, JsonValue]:
        """Changed parameters; trial.params holds the new values from here on."""
        return dict(self._settle().set)

    @property
    def roll_back_to(self) -> Optional[int]:
        """Continue from this earlier step; None: go on."""
        return self._settle().roll_back_to

    @property
    def why(self) -> str:
        return self._settle().why

    def _settle(self) -> Shown:
        session = self._trial._session
        if not self._settled and session is not None and not self._trial._link.forked:
            self._settled = True
            if self._report > 0:
                session.wait_for_answer(self._report, self._trial._link.options.report_wait_s)
            self._trial._take_into(self._shown)
        return self._shown


class Trial:
    """One run with fixed starting parameters. Made by jizi.trials() alone. Not for two threads at
    once. `with trial:` ends it where the block ends, as failed when an exception leaves it."""

    def __init__(self, link: Link, assigned: Assigned) -> None:
        self._link = link
        self._assigned = assigned
        self._params = {**link.options.defaults, **assigned.params}
        self._session: Optional[Session] = None
        if assigned.session is not None and link.client is not None:
            self._session = Session(link.client, link.outbox, assigned.session)
        self._outcome = service.CompleteRequest()
        self._outcome.finished.SetInParent()
        self._meter = ResourceMeter(link.options.resources_every_s)
        self._last_step = assigned.last_step
        self._total_steps: Optional[int] = None  # Not yet sent.
        self._stop = self._pause = self._left_by_signal = False
        self._stop_why = ""
        self._ended = False
        self._said_step = self._said_left_out = False

    # ---- what it starts with ----

    @property
    def id(self) -> int:
        """0 when run by hand."""
        return self._assigned.id

    @property
    def params(self) -> Dict[str, Any]:
        """A copy of the parameters as they are now; nested names are joined with dots."""
        self._link.read_params = True
        return dict(self._params)

    @property
    def directory(self) -> str:
        """The trial's folder; the current one when run by hand."""
        return self._assigned.folder

    @property
    def warm_start(self) -> Optional[str]:
        """The checkpoint to start from; None when starting fresh."""
        return self._assigned.warm_start or None

    @property
    def start_step(self) -> int:
        """The step of warm_start, else 0: go on with the step after it."""
        return self._assigned.start_step

    def plan_steps(self, total_steps: int) -> None:
        """For progress and ETA."""
        steps = operator.index(total_steps)
        if steps >= 0:
            self._total_steps = steps
        else:
            self._leave_out(f"a plan of {steps} steps")

    # ---- what it measures ----

    def report(
        self,
        step: int,
        metrics: Optional[Mapping[str, SupportsFloat]] = None,
        /,
        *,
        gradient: Optional[GradientStatistics] = None,
        **named: SupportsFloat,
    ) -> ReportResult:
        """Steps are >= 0 and must not fall: a report that goes back is not sent, and that is said.
        A metric may be NaN. Names other than 1 to 256 bytes of text without control characters,
        what is more than 1000 metrics, and batch sizes that are not above 0 are left out, and that
        is said once; the rest is sent. Returns at once with one rank; with several it waits up to
        report_wait_s. TypeError: a value that is no number."""
        values = _numbers({**(metrics or {}), **named})
        shown = Shown()
        # What came too late for the report before is obeyed here. Measured on a branch that was
        # rolled back meanwhile, this one does not count and is not sent.
        self._take_into(shown)
        number = 0
        if self._link.talks and shown.roll_back_to is None:
            number = self._send(operator.index(step), values, gradient)
        if self._link.several_ranks:
            return ReportResult(self, number, self._collective(number, shown), settled=True)
        return ReportResult(self, number, shown, settled=False)

    def checkpoint(self, step: int, source: Union[str, os.PathLike[str], Writer]) -> bool:
        """A writer fills a temporary file at the path that it is given (and raises if it cannot);
        that is synced, renamed to a file in checkpoints/, digested and registered. A path names a
        file that the program wrote already, beneath `directory`, reached without links; leave it as
        it is from then on. False, and a line on stderr, if it could not be saved: the trial goes on
        with the older checkpoint. With several ranks rank 0 writes; every rank gets its result."""
        saved = False
        if self._link.talks:
            folder, at = self._assigned.folder, operator.index(step)
            try:
                if callable(source):
                    checkpoint = write_checkpoint(folder, at, self._assigned.attempt, source)
                else:
                    checkpoint = adopt_checkpoint(folder, at, os.fspath(source))
                saved = True
                if self._session is not None and not self._link.forked:
                    self._session.add_checkpoint(checkpoint)
            except (CheckpointError, OSError) as error:
                say_line(f"the checkpoint of step {at} was not saved: {error}")
        return self._link.share(b"1" if saved else b"0") == b"1"

    # ---- its end ----

    def fail(self, why: str) -> None:
        """It may be tried again."""
        self._outcome.failed.why = utf8_text(why, MAX_WHY_BYTES)

    def infeasible(self, why: str) -> None:
        """These parameters never work."""
        self._outcome.infeasible.why = utf8_text(why, MAX_WHY_BYTES)

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool:
        """Infeasible ends here: the program goes on. Any other exception fails the trial and goes
        its way; KeyboardInterrupt and SystemExit leave the end to the worker."""
        if error is not None:
            self._end_with(error)
        else:
            self._finish()
        return isinstance(error, Infeasible)

    def _end_with(self, error: BaseException) -> None:
        if isinstance(error, Infeasible):
            self.infeasible(str(error) or "its program raised Infeasible")
        elif isinstance(error, Exception):
            self.fail(_reason(error))
        else:
            self._leave()
            return
        self._finish()

    def _finish(self) -> None:
        """Sends what waits and completes the trial: as finished, unless fail or infeasible was
        called; where the program left because of SIGTERM the end is the worker's."""
        if self._ended:
            return
        self._ended = True
        if not self._link.forked:
            flush_output()  # A forked child's buffers are copies, which would come twice.
        session = self._session
        if session is None or self._link.forked:
            return
        self._say_unread()
        wait_s = self._link.options.flush_wait_s
        if self._left_by_signal and not self._stop:
            session.flush(time.monotonic() + min(wait_s, FLUSH_AT_TERMINATE_S))
        elif not session.complete(self._outcome, time.monotonic() + wait_s):
            self._say_unanswered(wait_s)
        session.close()

    def _say_unread(self) -> None:
        """A program that never asked for its parameters trained with its own."""
        link = self._link
        # A command with the parameters in it may have read its flags.
        if link.read_params or link.said_unread or link.env.one_trial or not self._params:
            return
        if self._outcome.HasField("finished"):
            link.said_unread = True
            names = ", ".join(sorted(self._params))
            say_line(
                f"the parameters of the sweep ({names}) were never read by this program: it finds "
                "them in trial.params"
            )

    def _leave(self) -> None:
        """Its end is told by the process's exit code; what waits is worth a moment."""
        if self._ended or self._session is None or self._link.forked:
            return
        self._ended = True
        self._session.flush(time.monotonic() + FLUSH_AT_TERMINATE_S)
        self._session.close()

    def _say_unanswered(self, wait_s: float) -> None:
        self._link.unanswered = True
        why = ""
        kind = self._outcome.WhichOneof("outcome")
        if kind == "failed":
            why = f" (it failed: {self._outcome.failed.why})"
        elif kind == "infeasible":
            why = f" (its parameters never work: {self._outcome.infeasible.why})"
        if why:
            tell_by_exit_code()
        outbox = self._link.outbox.path
        where = f"is in {outbox} and its worker sends it" if outbox else "is lost"
        say_line(
            f"trial {self.id}{why}: the service did not take its end within {wait_s:g} s; what "
            f"was not sent {where}"
        )

    # ---- within ----

    def _send(
        self, step: int, values: Dict[str, float], gradient: Optional[GradientStatistics]
    ) -> int:
        """The number to wait for, 0 if it was not sent."""
        if step < 0 or step < self._last_step:
            if not self._said_step:
                self._said_step = True
                say_line(
                    f"trial {self.id}: a report of step {step} is not sent: step "
                    f"{self._last_step} was reported before, and steps must not fall (a trial "
                    "that starts from a checkpoint goes on after start_step)"
                )
            return 0
        self._last_step = step
        measurement = self._fitting(step, values, gradient)
        if self._session is None or self._ended or self._link.forked:
            return 0
        total_steps, self._total_steps = self._total_steps, None
        return self._session.report(measurement, total_steps)

    def _fitting(
        self, step: int, values: Dict[str, float], gradient: Optional[GradientStatistics]
    ) -> types.Measurement:
        """One value that the service would not take costs itself alone."""
        measurement = types.Measurement(step=step)
        for name, value in [*values.items(), *self._meter.due(step).items()]:
            if not _is_metric_name(name):
                self._leave_out(
                    f"a metric named {name[:60]!r}: a name has 1 to 256 bytes of UTF-8 "
                    "without control characters"
                )
            elif len(measurement.metrics) >= MAX_METRICS:
                self._leave_out(f"metric {name!r}: a report holds at most 1000 metrics")
            else:
                measurement.metrics[name] = value
        if gradient is not None:
            sizes = (gradient.small_batch_size, gradient.big_batch_size)
            if all(size > 0 and math.isfinite(size) for size in sizes):
                measurement.gradient.CopyFrom(types.GradientStatistics(**asdict(gradient)))
            else:
                self._leave_out("gradient statistics: a batch size must be a positive number")
        measurement.time.FromMicroseconds(time.time_ns() // 1000)
        return measurement

    def _leave_out(self, what: str) -> None:
        if not self._said_left_out:
            self._said_left_out = True
            say_line(
                f"trial {self.id}: left out of its reports, as is all that is no better: {what}"
            )

    def _take_into(self, shown: Shown) -> None:
        """Takes what the service said since, and adds it to what is shown."""
        if self._session is None or self._link.forked:
            return
        told = self._session.take()
        if told.stop or told.pause or told.lost:
            self._stop = True
            self._pause = told.pause or (self._pause and not told.stop)
            self._stop_why = told.why
        self._apply(Shown(set=told.set, roll_back_to=told.roll_back_to))
        shown.set.update(told.set)
        if told.roll_back_to is not None:
            shown.roll_back_to = told.roll_back_to
        shown.why = told.why or shown.why
        if self._stop:
            shown.stop, shown.pause, shown.why = True, self._pause, self._stop_why

    def _apply(self, shown: Shown) -> None:
        self._params.update(shown.set)
        if shown.roll_back_to is not None:
            self._last_step = min(self._last_step, shown.roll_back_to)
        self._left_by_signal = self._left_by_signal or shown.by_signal

    def _collective(self, report: int, shown: Shown) -> Shown:
        """Several ranks: waits on rank 0 and tells the others."""
        if self._link.talks:
            if report > 0 and self._session is not None:
                self._session.wait_for_answer(report, self._link.options.report_wait_s)
            self._take_into(shown)
            if not shown.stop and terminate_seen():
                shown.stop = shown.by_signal = True
                shown.why = "this process is to end (SIGTERM)"
        shown = Shown(**json.loads(self._link.share(json.dumps(asdict(shown)).encode())))
        self._apply(shown)
        return shown


def _numbers(values: Mapping[str, SupportsFloat]) -> Dict[str, float]:
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"jizi: the metric {name!r} is {value!r:.80}, no number: {error}"
            ) from None
    return numbers


def _is_metric_name(name: object) -> bool:
    if not isinstance(name, str) or any(ord(c) < 0x20 or ord(c) == 0x7F for c in name):
        return False
    try:
        return 1 <= len(name.encode("utf-8")) <= MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _reason(error: BaseException) -> str:
    """One line that a person finds the place by: what, and where it was raised."""
    what = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return what
    last = frames[-1]
    return f"{what} ({os.path.basename(last.filename)}:{last.lineno}, in {last.name})"
