"""The helper against a service that says what a test wants it to say.   usage: scripted_test.py BUILD_DIR

In this process: a gRPC server of our own that speaks the wire, so that no scheduler is needed for changes and roll-backs.
"""
import threading
import time
from concurrent import futures

import grpc
from testing import *
from jizi import _trials
from jizi._checkpoint_file import CheckpointError, adopt_checkpoint, verify_checkpoint, write_checkpoint
from jizi._outbox import Outbox, read_outbox
from jizi.v1 import error_pb2


class Scripted:
    """Answers Attach, Suggest (one trial, then finished), Report, RegisterCheckpoint, Complete, Renew; keeps what it was told."""

    def __init__(self, place):
        self.told = []  # (method, request), in order.
        self.answers = {}  # step -> Directive, or an Error to be answered, or seconds to wait.
        self.next_sequence = 1
        self.refuse = {}  # method -> (kind, code), once each.
        self.given = False
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        names = ("Attach", "Suggest", "Report", "RegisterCheckpoint", "Complete", "Renew")
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("jizi.v1.TuneService", {
            name: grpc.unary_unary_rpc_method_handler(self.handler(name), getattr(service, name + "Request").FromString,
                                                      lambda message: message.SerializeToString()) for name in names})])
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.lease = types.Lease(study="s", trial=1, attempt=1, token=b"0123456789abcdef")
        self.outbox = str(place.folder / "outbox")
        for name in [name for name in os.environ if name.startswith("JIZI_")]:
            del os.environ[name]
        os.environ.update(JIZI_ENDPOINT=f"127.0.0.1:{port}", JIZI_STUDY="s", JIZI_WORKER="w", JIZI_OUTBOX=self.outbox,
                          JIZI_CHECKPOINT_DIR=str(place.folder / "000001/checkpoints"))
        _trials._process = None

    def handler(self, name):
        def handle(request, context):
            context.set_trailing_metadata([("jizi-protocol", "1")])
            self.told.append((name, request))
            if name in self.refuse:
                kind, code = self.refuse.pop(name)
                detail = error_pb2.ErrorDetail(code=code, mend="do otherwise")
                rich = error_pb2.RpcStatus(message="refused")
                rich.details.add(type_url="type.googleapis.com/jizi.v1.ErrorDetail", value=detail.SerializeToString())
                context.set_trailing_metadata([("jizi-protocol", "1"), ("grpc-status-details-bin", rich.SerializeToString())])
                context.abort(getattr(grpc.StatusCode, kind), "refused")
            return getattr(self, name)(request)
        return handle

    def Attach(self, request):
        if not request.lease.token:
            return service.AttachResponse(next_worker_sequence=1)
        held = service.Assignment(lease=self.lease, lease_s=60)
        held.trial.id = 1
        held.trial.params["x"].float_value = 1.5
        return service.AttachResponse(held=[held], next_sequence=[self.next_sequence], last_step=[-1])

    def Suggest(self, request):
        answer = service.SuggestResponse()
        if self.given:
            answer.finished.why = "enough"
        else:
            assignment = answer.trials.assignments.add(lease=self.lease, lease_s=60)
            assignment.trial.id = 1
            assignment.trial.params["x"].float_value = 1.5
        self.given = True
        return answer

    def Report(self, request):
        response = service.ReportResponse(lease_s=60)
        response.directive.go_on.SetInParent()
        for measurement in request.measurements:
            answer = self.answers.get(measurement.step)
            if isinstance(answer, (int, float)):
                time.sleep(answer)
            elif answer is not None:
                response.directive.CopyFrom(answer)
        self.next_sequence = request.sequence + 1
        return response

    def RegisterCheckpoint(self, request):
        self.next_sequence = request.sequence + 1
        return service.RegisterCheckpointResponse(lease_s=60)

    def Complete(self, request):
        return service.CompleteResponse()

    def Renew(self, request):
        response = service.RenewResponse()
        response.leases.add(held=True, lease_s=60).directive.go_on.SetInParent()
        return response

    def steps(self):
        return [m.step for name, request in self.told if name == "Report" for m in request.measurements]

    def of(self, method):
        return [request for name, request in self.told if name == method]


def go_on(set_x=None, back=None, why=""):
    directive = types.Directive(why=why)
    directive.go_on.SetInParent()
    if set_x is not None:
        directive.go_on.set["x"].float_value = set_x
    if back is not None:
        directive.go_on.roll_back_to = back
    return directive


def contract_21_changes_and_roll_backs_show_at_their_own_step(place):
    fake = Scripted(place)
    fake.answers = {2: go_on(set_x=0.25, why="smaller"), 4: go_on(back=1)}
    trials = jizi.trials(report_wait_s=20, changeable=["x"], can_roll_back=True)
    trial = next(trials)
    check(fake.of("Attach")[-1].capabilities == types.Capabilities(stop=True, roll_back=True, changeable=["x"]), "capabilities")
    check(not trial.report(1, value=1).changes and trial.params == {"x": 1.5}, "step 1")
    second = trial.report(2, value=2)
    check(second.changes == {"x": 0.25} and second.why == "smaller" and trial.params == {"x": 0.25}, "step 2")
    trial.report(3, value=3)
    check(trial.report(4, value=4).roll_back_to == 1, "step 4")
    del fake.answers[4]
    check(trial.report(2, value=5).roll_back_to is None, "goes on after 1")
    check(next(trials, None) is None, "the study is finished")
    check(fake.steps() == [1, 2, 3, 4, 2], f"{fake.steps()}")
    check(fake.of("Complete")[0].HasField("finished"), "complete")
    sequences = [r.sequence for n, r in fake.told if n in ("Report", "RegisterCheckpoint", "Complete")]
    check(sequences == list(range(1, len(sequences) + 1)), f"{sequences}")


def contract_21_a_late_answer_shows_at_the_next_report(place):
    fake = Scripted(place)
    fake.answers = {1: 2.0, 2: types.Directive(stop=types.Directive.Stop(), why="too slow")}
    trial = next(jizi.trials(report_wait_s=0.1))
    begin = time.monotonic()
    check(not trial.report(1, value=1).should_stop and time.monotonic() - begin < 1.5, "it waits no longer than report_wait_s")
    check(not trial.report(2, value=1).should_stop, "an outage costs one wait")
    later = until(lambda: (result := trial.report(3, value=1)).should_stop and result, "the stop arrives")
    check(later.why == "too slow" and not later.should_pause, later.why)
    trial._finish()


def contract_22_a_call_that_hangs_is_on_disk(place):
    fake = Scripted(place)
    fake.answers = {1: 4.0}
    trial = next(jizi.trials(report_wait_s=0.05))
    trial.report(1, value=1)
    until(lambda: read_outbox(fake.outbox)[0], "the report is in the file while its call hangs")
    trial.report(2, value=2)
    until(lambda: len(read_outbox(fake.outbox)[0]) == 2, "and what is measured meanwhile")
    trial._finish()
    check(fake.steps() == [1, 2] and not read_outbox(fake.outbox)[0], f"{fake.steps()}")


def contract_12_what_was_sent_is_repeated_with_its_number(place):
    fake = Scripted(place)
    fake.refuse = {"Report": ("UNAVAILABLE", "STORE_BUSY")}
    trial = next(jizi.trials(report_wait_s=20))
    trial.report(1, value=1)
    trial.checkpoint(1, lambda path: pathlib.Path(path).write_text("w"))
    trial._finish()
    reports = fake.of("Report")
    check(len(reports) == 2 and reports[0] == reports[1], f"{reports}")
    check([r.sequence for r in fake.of("RegisterCheckpoint") + fake.of("Complete")] == [2, 3], "the numbers after it")


def a_refused_checkpoint_costs_itself_alone(place):
    fake = Scripted(place)
    fake.refuse = {"RegisterCheckpoint": ("RESOURCE_EXHAUSTED", "TOO_MANY_CHECKPOINTS")}
    trial = next(jizi.trials(report_wait_s=20))
    trial.checkpoint(1, lambda path: pathlib.Path(path).write_text("w"))
    check(not trial.report(1, value=1).should_stop, "the trial goes on")
    trial._finish()
    check(fake.steps() == [1] and fake.of("Complete"), f"{fake.told}")


def a_lost_lease_shows_as_a_stop(place):
    fake = Scripted(place)
    fake.refuse = {"Report": ("FAILED_PRECONDITION", "LEASE_LOST")}
    trial = next(jizi.trials(report_wait_s=20))
    result = trial.report(1, value=1)
    check(result.should_stop and "lease was lost" in result.why, result.why)
    trial._finish()
    check(not fake.of("Complete"), "another has it")


def contract_26_checkpoints_stay_beneath_their_folder(place):
    folder = str(place.folder / "trial")
    write = lambda text: lambda path: pathlib.Path(path).write_text(text)
    first = write_checkpoint(folder, 3, 1, write("abc"))
    check((first.path, first.bytes) == ("checkpoints/step-3-attempt-1", 3) and first.sha256.startswith("ba7816bf"), f"{first}")
    check(write_checkpoint(folder, 3, 1, write("x")).path == "checkpoints/step-3-attempt-1-2", "never over a registered one")
    check(verify_checkpoint(folder, first).endswith("trial/checkpoints/step-3-attempt-1"), "verified")
    os.symlink("/etc", f"{folder}/link")
    os.symlink("/etc/passwd", f"{folder}/passwd")
    os.mkfifo(f"{folder}/pipe")
    for path in ("../out", "/etc/passwd", "link/passwd", "passwd", "pipe", ".", "none", ""):
        try:
            adopt_checkpoint(folder, 1, path)
        except CheckpointError:
            continue
        raise Fault(f"{path!r} was taken")
    check(adopt_checkpoint(folder, 1, f"{folder}/checkpoints/step-3-attempt-1").path == first.path, "an absolute one")

    def breaks(path):
        pathlib.Path(path).write_text("half")
        raise RuntimeError("no space")

    for writer in (breaks, write(""), lambda path: None):
        try:
            write_checkpoint(folder, 4, 1, writer)
        except CheckpointError:
            continue
        raise Fault("a checkpoint that was not written counts")
    check(sorted(os.listdir(f"{folder}/checkpoints")) == ["step-3-attempt-1", "step-3-attempt-1-2"], "nothing is left of it")


def a_torn_outbox_ends_at_its_last_whole_report(place):
    path = str(place.folder / "torn")
    box = Outbox(path)
    requests = [service.ReportRequest(sequence=n, measurements=[types.Measurement(step=n, metrics={"v": 1.0})]) for n in range(1, 60)]
    check(box.append(requests[:40]) and box.append(requests[40:]), box.error)
    whole = pathlib.Path(path).read_bytes()
    for cut in (0, 1, 5, len(whole) - 1, len(whole)):
        pathlib.Path(path).write_bytes(whole[:cut])
        found, size, torn = read_outbox(path)
        check(found == requests[: len(found)] and torn == (size != cut), f"{cut}")
    check(len(found) == 59, "all")
    check(Outbox(path).replace(requests[-1:]) and read_outbox(path)[0] == requests[-1:], "replaced")


threading.excepthook = lambda args: sys.exit(f"a thread ended: {args}")
run_all([
    contract_21_changes_and_roll_backs_show_at_their_own_step,
    contract_21_a_late_answer_shows_at_the_next_report,
    contract_22_a_call_that_hangs_is_on_disk,
    contract_12_what_was_sent_is_repeated_with_its_number,
    a_refused_checkpoint_costs_itself_alone,
    a_lost_lease_shows_as_a_stop,
    contract_26_checkpoints_stay_beneath_their_folder,
    a_torn_outbox_ends_at_its_last_whole_report,
])
