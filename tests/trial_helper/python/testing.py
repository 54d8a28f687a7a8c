"""What the tests of the Python package share: a served study, and the environment of a worker around a trial.

Run with the Python of the environment that scripts/python_env.sh makes:   X_test.py BUILD_DIR
"""
import pathlib
import shutil
import sys
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "cli"))
from harness import *  # noqa: E402, F403
from harness import __all__ as harness_names

import jizi  # noqa: E402
from jizi import _wire  # noqa: E402
from jizi.v1 import tune_service_pb2 as service  # noqa: E402
from jizi.v1 import types_pb2 as types  # noqa: E402

PROGRAM = str(HERE / "program.py")
EXAMPLES = HERE.parent.parent.parent / "examples"
BIN = str(pathlib.Path(sys.executable).parent)


def sweep(place, *arguments, trials=4, workers=1, more="", command=None):
    """A sweep whose processes take trial after trial, and find this package."""
    place.environment["PATH"] = BIN + ":/usr/bin:/bin"
    words = command or ["${env}", "python3", PROGRAM, *map(str, arguments)]
    path = place.folder / "sweep.yaml"
    path.write_text(
        f"command: {json.dumps(words)}\nmethod: random\nrun_cap: {trials}\nmetric: {{name: value, goal: maximize}}\n"
        f"parameters:\n  x: {{min: 1.0, max: 2.0}}\njizi: {{workers: {workers}, seed: 3, grace: 2{more}}}\n")
    return str(path)


def rows(place, query, database=None):
    with sqlite3.connect(f"file:{database or place.database}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


def copied(place, example, sweep_file, more):
    """The example in a folder of its own, with less of everything: `more` goes beneath `parameters:`."""
    shutil.copytree(EXAMPLES / example, place.folder / example)
    path = place.folder / example / sweep_file
    text = path.read_text()
    check("\nparameters:\n" in text, "the sweep file has changed its shape")
    path.write_text(text.replace("\nparameters:\n", f"\nparameters:\n{more}"))
    return path


def needs_data():
    if not os.path.exists("/usr/share/datasets/fashion-mnist"):
        print("SKIPPED: the examples need dataset-fashion-mnist (make deps installs it)", file=sys.stderr)
        sys.exit(77)


class Served:
    """`jizi serve` over a Unix socket, with a study of one parameter; it can be killed and started again."""

    def __init__(self, place, run_cap=10):
        self.place = place
        self.database = place.folder / "served.db"
        (place.folder / "socket").mkdir(mode=0o700)
        self.address = f"unix:{place.folder}/socket/s"
        self.start()
        self.client = _wire.Client(self.address)
        spec = types.StudySpec(name="sweep", method="random", seed=3)
        spec.parameters.add(name="x").numeric.uniform.MergeFrom(types.UniformDistribution(min=1, max=2))
        spec.metrics.add(name="value", goal=types.GOAL_MAXIMIZE)
        spec.budget.run_cap = run_cap
        self.call("CreateStudy", service.CreateStudyRequest(spec=spec, request_id="one"))
        self.sequence = 0

    def start(self):
        self.server = self.place.start("serve", "--db", str(self.database), "--listen", self.address)
        until(lambda: "serving " in self.server.log.read_text(), "the server is up")

    def kill(self):
        self.server.kill()
        self.server.wait()

    def call(self, method, request):
        """Repeats while the channel is still waiting to connect again."""
        def once():
            try:
                return self.client.call(method, request, 10)
            except jizi.Error as error:
                if not _wire.is_away(error):
                    raise
        return until(once, method)

    def suggest(self, lease_s=60):
        self.sequence += 1
        request = service.SuggestRequest(study="sweep", worker="worker", sequence=self.sequence, lease_s=lease_s)
        answer = self.call("Suggest", request)
        check(answer.WhichOneof("answer") == "trials", f"no trial: {answer}")
        return answer.trials.assignments[0]

    def environment_of(self, assignment, **more):
        """What an executor sets, docs/design.md."""
        lease = assignment.lease
        folder = self.place.folder / f"{lease.trial:06d}"
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        return dict(JIZI_ENDPOINT=self.address, JIZI_STUDY="sweep", JIZI_WORKER="worker", JIZI_TRIAL=str(lease.trial),
                    JIZI_ATTEMPT=str(lease.attempt), JIZI_LEASE=lease.token.hex(), JIZI_CHECKPOINT_DIR=str(folder / "checkpoints"),
                    JIZI_OUTBOX=str(self.outbox), JIZI_PARAMS='{"x": 1.5}', **more)

    @property
    def outbox(self):
        return self.place.folder / "outbox"

    def program(self, assignment, *arguments, pass_fds=(), **more):
        log = open(self.place.folder / f"log-{uuid.uuid4().hex}", "wb")
        process = subprocess.Popen([sys.executable, PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, cwd=self.place.folder, start_new_session=True, pass_fds=pass_fds,
                                   env=dict(self.place.environment, **self.environment_of(assignment, **more)))
        process.log = pathlib.Path(log.name)
        return process

    @property
    def study(self):
        return jizi.Study(self.client, "sweep")

    def values(self, trial):
        """value by step of what counts; nothing may be there twice."""
        measured = [(m["step"], m["metrics"]["value"]) for m in self.study.measurements(trial) if "value" in m["metrics"]]
        check(len(dict(measured)) == len(measured), f"a step counts twice: {measured}")
        return dict(measured)


__all__ = [*harness_names, "BIN", "EXAMPLES", "HERE", "PROGRAM", "Served", "copied", "jizi", "needs_data", "pathlib", "rows", "service", "sweep", "sys", "types"]
