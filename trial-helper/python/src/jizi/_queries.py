"""Asks a service for results, as plain dicts that json.dumps takes.

Times are seconds since 1970 (UTC), or None while they have not come; a metric that is NaN or
infinite is a float that is. Fails: jizi.Error, NOT_FOUND for a study or trial that is not there.
"""

from __future__ import annotations

import uuid
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from jizi._wire import Client, Error, JsonValue, from_params, to_value
from jizi.v1 import tune_service_pb2 as service
from jizi.v1 import types_pb2 as types

DEADLINE_S = 60.0
PAGE = 200
MEASUREMENTS = 10_000

Plain = Dict[str, Any]


def _word(enum: Any, value: int) -> str:
    """TRIAL_STATE_RUNNING -> running"""
    prefix = len(enum.Name(0)) - len("UNSPECIFIED")
    return str(enum.Name(value)[prefix:]).lower()


def _time(message: Any, name: str) -> Optional[float]:
    if not message.HasField(name):
        return None
    stamp = getattr(message, name)
    return float(stamp.seconds + stamp.nanos / 1e9)


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _measurement(measured: types.Measurement) -> Plain:
    return {
        "step": measured.step,
        "metrics": dict(sorted(measured.metrics.items())),
        "time": _time(measured, "time"),
        "attempt": measured.attempt,
    }


def _attempt(attempt: types.Attempt) -> Plain:
    ended = attempt.end != 0
    return {
        "number": attempt.number,
        "worker": attempt.worker,
        "started": _time(attempt, "started"),
        "ended": _time(attempt, "ended"),
        "end": _word(types.AttemptEnd, attempt.end) if ended else None,
        "why": attempt.why,
        "start_step": attempt.start_step,
    }


def _checkpoint(checkpoint: types.Checkpoint) -> Plain:
    names = ("step", "path", "sha256", "bytes", "attempt")
    return {name: getattr(checkpoint, name) for name in names}


def _trial(trial: types.Trial) -> Plain:
    last = _optional(trial, "last_measurement")
    return {
        "id": trial.id,
        "state": _word(types.TrialState, trial.state),
        "params": from_params(trial.params),
        "objective": _optional(trial, "objective"),
        "why": trial.why,
        "end_why": trial.end_why,
        "created": _time(trial, "created"),
        "started": _time(trial, "started"),
        "ended": _time(trial, "ended"),
        "attempts": [_attempt(attempt) for attempt in trial.attempts],
        "measurement_count": trial.measurement_count,
        "last_measurement": None if last is None else _measurement(last),
        "checkpoints": [_checkpoint(checkpoint) for checkpoint in trial.checkpoints],
        "successor_of": _optional(trial, "successor_of"),
        "tags": dict(trial.tags),
        "attributes": dict(trial.attributes),
        "total_steps": _optional(trial, "total_steps"),
        "worker": trial.worker,
    }


def _study(study: types.Study) -> Plain:
    metrics = [
        {
            "name": metric.name,
            "goal": "maximize" if metric.goal == types.GOAL_MAXIMIZE else "minimize",
            "target": _optional(metric, "target"),
        }
        for metric in study.spec.metrics
    ]
    names = [state.name for state in types.TrialCounts.DESCRIPTOR.fields]
    counts = {name: getattr(study.counts, name) for name in names}
    return {
        "name": study.spec.name,
        "state": _word(types.StudyState, study.state),
        "state_why": study.state_why,
        "method": study.spec.method,
        "metrics": metrics,
        "parameters": [parameter.name for parameter in study.spec.parameters],
        "seed": study.spec.seed,
        "run_cap": _optional(study.spec.budget, "run_cap"),
        "created": _time(study, "created"),
        "counts": counts,
        "best_trial": _optional(study, "best_trial"),
        "best_objective": _optional(study, "best_objective"),
        "attributes": dict(study.spec.attributes),
    }


class Study:
    """One study of a service. Iterating gives its trials by number."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def info(self) -> Plain:
        request = service.GetStudyRequest(study=self.name)
        return _study(self._client.call("GetStudy", request, DEADLINE_S).study)

    def best(self) -> Optional[Plain]:
        """The best trial so far; None before there is one."""
        number = self.info()["best_trial"]
        return None if number is None else self.trial(number)

    def trial(self, number: int) -> Plain:
        request = service.GetTrialRequest(study=self.name, trial=number, max_measurements=1)
        return _trial(self._client.call("GetTrial", request, DEADLINE_S).trial)

    def measurements(self, number: int) -> List[Plain]:
        """What counts of a trial, by step: [{"step": 1, "metrics": {"loss": 0.3}, ...}, ...]"""
        found: List[Plain] = []
        while True:
            request = service.GetTrialRequest(
                study=self.name,
                trial=number,
                max_measurements=MEASUREMENTS,
                skip_measurements=len(found),
            )
            trial = self._client.call("GetTrial", request, DEADLINE_S).trial
            found += [_measurement(measured) for measured in trial.measurements]
            if not trial.measurements or len(found) >= trial.measurement_count:
                return found

    def curve(self, number: int, metric: str) -> Dict[int, float]:
        """A metric's value by step."""
        return {
            measured["step"]: measured["metrics"][metric]
            for measured in self.measurements(number)
            if metric in measured["metrics"]
        }

    def trials(
        self,
        states: Union[str, Iterable[str]] = (),
        sort: str = "",
        descending: bool = False,
    ) -> Iterator[Plain]:
        """Every trial, or those in these states ("completed", "failed", ...), by number or sorted
        by "objective" or by the last value of a metric."""
        wanted = [states] if isinstance(states, str) else list(states)
        numbers = [_state(word) for word in wanted]
        token = ""
        while True:
            request = service.ListTrialsRequest(
                study=self.name,
                page_size=PAGE,
                page_token=token,
                states=numbers,
                sort_metric=sort,
                descending=descending,
            )
            page = self._client.call("ListTrials", request, DEADLINE_S)
            for trial in page.trials:
                yield _trial(trial)
            token = page.next_page_token
            if not token:
                return

    def __iter__(self) -> Iterator[Plain]:
        return self.trials()

    def enqueue(self, params: Mapping[str, JsonValue]) -> Plain:
        """Adds a trial with parameters of your choice; it runs before others."""
        request = service.EnqueueTrialRequest(study=self.name, request_id=uuid.uuid4().hex)
        for name, value in params.items():
            request.params[name].CopyFrom(to_value(value))
        return _trial(self._client.call("EnqueueTrial", request, DEADLINE_S).trial)


def _state(word: str) -> str:
    names = [_word(types.TrialState, value) for value in types.TrialState.values()]
    if word.lower() not in names[1:]:
        known = ", ".join(names[1:])
        raise ValueError(f"jizi: {word!r} is no state of a trial: give one of {known}")
    return f"TRIAL_STATE_{word.upper()}"


class Service:
    """A connection to `jizi serve`, or to the `jizi run` that is going on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def study(self, name: str) -> Study:
        """Nothing is asked yet: NOT_FOUND comes with the first question."""
        return Study(self._client, name)

    def studies(self) -> Iterator[Plain]:
        token = ""
        while True:
            request = service.ListStudiesRequest(page_size=PAGE, page_token=token)
            page = self._client.call("ListStudies", request, DEADLINE_S)
            for study in page.studies:
                yield _study(study)
            token = page.next_page_token
            if not token:
                return

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def connect(address: str, token_file: str = "", ca_file: str = "") -> Service:
    """address: "unix:/path" or "host:port". token_file: the server's FILE.token (over TCP).
    ca_file: a PEM file where the server has TLS. jizi.Error ADDRESS, TOKEN_FILE or CA_FILE where
    one of them cannot be used; whether the service is there shows with the first question."""
    return Service(Client(address, token_file, ca_file))


__all__ = ["Error", "Service", "Study", "connect"]
