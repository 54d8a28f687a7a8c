"""What the worker that started this program says to it (docs/design.md, "A trial's contract with
its program"). The one place of the helper that reads the environment.

Fails: ValueError naming the variable, what it holds and the mend.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
from dataclasses import dataclass, field
from typing import Dict, NoReturn, Optional

from jizi._wire import Client, Error, JsonValue
from jizi.v1 import types_pb2


@dataclass
class Environment:
    endpoint: str = ""  # Empty: run by hand, without a service.
    study: str = ""
    worker: str = ""  # Given, or made up for a program started by hand.
    made_up_worker: bool = False
    lease: Optional[types_pb2.Lease] = None  # Of the first trial; none: ask for one.
    params: Dict[str, JsonValue] = field(default_factory=dict)  # For when the service is away.
    trial_folder: str = ""  # Of the first trial; empty where nobody says.
    trials_folder: str = ""  # Trials' folders: <trials_folder>/<id, 6 digits>.
    warm_start: str = ""
    warm_start_step: int = 0
    outbox: str = ""
    output_mark: str = ""  # Of _trial_files.py; empty: none.
    one_trial: bool = False
    rank: int = 0
    world_size: int = 1


def _read(name: str) -> str:
    return os.environ.get(name, "")


def _refuse(name: str, value: str, mend: str) -> NoReturn:
    raise ValueError(f'jizi: the environment variable {name} holds "{value[:80]}": {mend}')


def _number(name: str, otherwise: int, smallest: int) -> int:
    text = _read(name)
    if not text:
        return otherwise
    if not re.fullmatch(r"[0-9]{1,16}", text) or int(text) < smallest:
        _refuse(name, text, f"it must be a whole number of at least {smallest}")
    return int(text)


def _token() -> bytes:
    text = _read("JIZI_LEASE")
    if not re.fullmatch(r"[0-9a-fA-F]{32}", text):
        mend = "it must be the 32 hex digits of the lease's token, as its worker sets it"
        _refuse("JIZI_LEASE", text, mend)
    return bytes.fromhex(text)


def _params() -> Dict[str, JsonValue]:
    text = _read("JIZI_PARAMS")
    if not text:
        return {}
    mend = 'give one JSON object, such as {"lr": 0.1}'
    try:
        params = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse("JIZI_PARAMS", text, f"{error}; {mend}")
    if not isinstance(params, dict):
        _refuse("JIZI_PARAMS", text, mend)
    return params


def _check_socket(endpoint: str) -> None:
    """A path that is not whole is another's in a program that runs in a folder of its own: the
    service would seem to be away for ever."""
    path = endpoint[len("unix:") :]
    if endpoint.startswith("unix:") and not os.path.isabs(path) and not os.path.exists(path):
        mend = f"there is no such socket in {os.getcwd()}, where this program runs: give its whole"
        _refuse("JIZI_ENDPOINT", endpoint, f"{mend} path, unix:/...")


def _read_lease(env: Environment) -> None:
    if _read("JIZI_TRIAL"):
        attempt = _number("JIZI_ATTEMPT", 0, 1)
        if attempt < 1:
            _refuse("JIZI_ATTEMPT", "", "set it beside JIZI_TRIAL")
        trial = _number("JIZI_TRIAL", 0, 1)
        env.lease = types_pb2.Lease(study=env.study, trial=trial, attempt=attempt, token=_token())
        # A lease without its worker: other trials would go to a worker that nobody knows.
        env.one_trial = env.one_trial or not env.worker
    elif not env.worker:
        env.made_up_worker = True
        number = random.SystemRandom().getrandbits(32)
        env.worker = f"hand/{socket.gethostname()}/{os.getpid()}/{number:08x}"


def read_environment() -> Environment:
    env = Environment()
    env.rank = _number("RANK", 0, 0)
    env.world_size = _number("WORLD_SIZE", 1, 1)
    env.params = _params()
    env.warm_start = _read("JIZI_WARM_START")
    env.warm_start_step = _number("JIZI_WARM_START_STEP", 0, 0)
    folder = _read("JIZI_CHECKPOINT_DIR")
    if folder:
        env.trial_folder = os.path.dirname(os.path.abspath(folder))
        env.trials_folder = os.path.dirname(env.trial_folder)
    else:
        env.trials_folder = os.path.join(os.getcwd(), "jizi-trials")
    env.endpoint = _read("JIZI_ENDPOINT")
    if not env.endpoint:
        return env
    _check_socket(env.endpoint)
    env.study = _read("JIZI_STUDY")
    if not env.study:
        mend = "name the study that JIZI_ENDPOINT serves, or unset JIZI_ENDPOINT"
        _refuse("JIZI_STUDY", "", mend)
    env.worker = _read("JIZI_WORKER")
    env.outbox = _read("JIZI_OUTBOX")
    env.output_mark = _read("JIZI_OUTPUT_MARK")
    env.one_trial = _read("JIZI_ONE_TRIAL") not in ("", "0")
    _read_lease(env)
    return env


def connect_from_environment(endpoint: str) -> Client:
    try:
        return Client(endpoint, _read("JIZI_TOKEN_FILE"), _read("JIZI_CA_FILE"))
    except Error as error:
        names = {"TOKEN_FILE": "JIZI_TOKEN_FILE", "CA_FILE": "JIZI_CA_FILE"}
        why = f"jizi: the environment variable {names.get(error.code, 'JIZI_ENDPOINT')}: {error}"
        if error.code in names and not os.path.isabs(error.subject):
            why += f"; {error.subject} is looked for in {os.getcwd()}, where this program runs: "
            why += "give its whole path"
        raise ValueError(why) from None


def folder_of(trials_folder: str, trial: int) -> str:
    return os.path.join(trials_folder, f"{trial:06d}")
