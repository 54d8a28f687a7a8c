"""The Python helper against a real service that goes away, in processes of their own.   usage: service_test.py BUILD_DIR"""
import random
import socket

from testing import *
from jizi._outbox import read_outbox


def waited(process, code):
    process.wait(timeout=DEADLINE_S)
    check(process.returncode == code, f"ended with {process.returncode}, not {code}:\n{process.log.read_text()}")


def progress(go):
    path = pathlib.Path(f"{go}.step")
    text = path.read_text() if path.exists() else ""
    return int(text or 0)


def contract_22_training_goes_on_while_the_service_is_away_and_nothing_counts_twice(place):
    served = Served(place, run_cap=1)
    go = place.folder / "go"
    program = served.program(served.suggest(), "steps_until", go)
    for _ in range(2):
        reached = progress(go)
        until(lambda: progress(go) > reached + 5, "the program reports")
        served.kill()
        away_at = progress(go)
        until(lambda: progress(go) > away_at + 50, "the training goes on")
        served.start()
        until(lambda: len(served.values(1)) > away_at + 20, "the backlog arrives")
    go.touch()
    waited(program, 0)
    last = progress(go)
    check(served.values(1) == {step: float(step) for step in range(1, last + 1)}, f"{len(served.values(1))} of {last}")
    check(served.study.trial(1)["state"] == "completed", f"{served.study.trial(1)}")
    check(not read_outbox(str(served.outbox))[0], "the outbox is not empty")
    said = program.log.read_text()
    check(said.count("the service is away") == 2 and said.count("the service is back") == 2, said)


def contract_22_what_kill_9_leaves_is_in_the_outbox(place):
    seed = int(os.environ.get("JIZI_TEST_SEED", random.SystemRandom().randrange(10**9)))
    print(f"JIZI_TEST_SEED={seed}")
    served = Served(place, run_cap=1)
    go = place.folder / "go"
    program = served.program(served.suggest(), "steps_until", go)
    until(lambda: progress(go) > 5, "the program reports")
    served.kill()
    away_at = progress(go)
    steps = random.Random(seed).randrange(150, 250)  # Beyond the second that a call may hang.
    until(lambda: progress(go) > away_at + steps, "the training goes on")
    kept = [m.step for request in read_outbox(str(served.outbox))[0] for m in request.measurements]
    program.kill()
    program.wait()
    check(kept and kept == list(range(kept[0], kept[-1] + 1)), f"gaps: {kept}")
    served.start()
    there = max(served.values(1), default=0)
    check(kept[0] <= there + 1 and kept[-1] >= away_at, f"in the file {kept[0]}..{kept[-1]}, the service has up to {there}")
    # The next process of the same attempt (a wrapper that starts the program again) sends them.
    lease = types.Lease()
    request = read_outbox(str(served.outbox))[0][0]
    lease.CopyFrom(request.lease)
    again = subprocess.run([sys.executable, "-c", "import jizi\nfor trial in jizi.trials():\n    trial.report(10**6, value=0)\n    break"],
                           env=dict(place.environment, JIZI_ENDPOINT=served.address, JIZI_STUDY="sweep", JIZI_WORKER="worker",
                                    JIZI_TRIAL="1", JIZI_ATTEMPT=str(lease.attempt), JIZI_LEASE=lease.token.hex(),
                                    JIZI_OUTBOX=str(served.outbox), JIZI_ONE_TRIAL="1"),
                           cwd=place.folder, capture_output=True, text=True, timeout=60, check=False)
    check(again.returncode == 0, again.stderr)
    values = served.values(1)
    check(set(kept) <= set(values), f"lost: {sorted(set(kept) - set(values))}\n{again.stderr}")


def an_end_that_the_service_did_not_hear_of_shows_in_the_exit_code(place):
    served = Served(place)
    for how, code in (("fail", 75), ("infeasible", 75), ("throw", 75), ("finish", 0)):
        program = served.program(served.suggest(), "unfinished", how, JIZI_ONE_TRIAL="1")
        until(lambda: "reported" in program.log.read_text(), "it reports")
        served.kill()
        (place.folder / "gone").touch()
        waited(program, code)
        said = program.log.read_text()
        check("handlers ran" in said and "is away" in said, said)
        for name in ("outbox", "gone"):
            (place.folder / name).unlink(missing_ok=True)
        served.start()


def sigterm_lets_the_program_save_and_leaves_the_end_to_the_worker(place):
    served = Served(place)
    program = served.program(served.suggest(), "until_stopped")
    until(lambda: "reported 5" in program.log.read_text(), "it reports")
    program.terminate()
    waited(program, 0)
    said = program.log.read_text()
    check("left: this process is to end (SIGTERM)" in said, said)
    trial = served.study.trial(1)
    check(trial["state"] == "running" and len(trial["checkpoints"]) == 1, f"{trial}")
    check(len(served.values(1)) == said.count("reported"), said)


def contract_9_a_silent_program_keeps_its_lease(place):
    served = Served(place)
    program = served.program(served.suggest(lease_s=1), "steps_until", place.folder / "go", JIZI_ONE_TRIAL="1")
    until(lambda: progress(place.folder / "go") > 0, "it reports")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: served.study.trial(1)["state"] == "queued", "a stopped process loses its lease")
    os.kill(program.pid, signal.SIGCONT)
    until(lambda: served.study.trial(1)["state"] == "running", "it comes back before another had it")
    (place.folder / "go").touch()
    waited(program, 0)
    quiet = place.folder / "quiet.py"
    quiet.write_text("import jizi, time\nfor trial in jizi.trials():\n    time.sleep(4)\n    trial.report(1, value=1)\n    break\n")
    assignment = served.suggest(lease_s=1)
    subprocess.run([sys.executable, str(quiet)], env=dict(place.environment, **served.environment_of(assignment)), cwd=place.folder,
                   timeout=60, check=True)
    trial = served.study.trial(assignment.trial.id)
    check([attempt["end"] for attempt in trial["attempts"]] == [None], f"{trial['attempts']}")


def a_lost_lease_stops_the_program(place):
    served = Served(place)
    assignment = served.suggest(lease_s=1)
    program = served.program(assignment, "until_stopped", JIZI_ONE_TRIAL="1")
    until(lambda: "reported 3" in program.log.read_text(), "it reports")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: served.study.trial(1)["state"] == "queued", "the lease expires")
    check(served.suggest().trial.id == 1, "another worker takes the trial")
    os.kill(program.pid, signal.SIGCONT)
    waited(program, 0)
    check("lease is lost" in program.log.read_text(), program.log.read_text())
    check(served.study.trial(1)["state"] == "running", "the other's attempt goes on")


def contract_20_every_rank_gets_the_same_at_the_same_step(place):
    served = Served(place, run_cap=2)
    assignment = served.suggest()
    ends = socket.socketpair()
    programs = [served.program(assignment, "ranks", 3, end.fileno(), pass_fds=[end.fileno()], RANK=str(rank), WORLD_SIZE="2")
                for rank, end in enumerate(ends)]
    for end in ends:
        end.close()
    for program in programs:
        waited(program, 0)
    first, second = (program.log.read_text() for program in programs)
    check(first == second and "trial 2" in first and "step 2 True False" in first, f"{first}\n---\n{second}")
    for trial in (1, 2):
        check(served.study.trial(trial)["state"] == "completed" and len(served.values(trial)) == 3, "rank 0 alone reports")
        check(len(served.study.trial(trial)["checkpoints"]) == 1, "rank 0 alone saves")
    alone = served.program(assignment, "train", 1, WORLD_SIZE="2", RANK="0")
    alone.wait(timeout=60)
    check(alone.returncode == 1 and "broadcast" in alone.log.read_text(), alone.log.read_text())


def a_forked_child_says_nothing(place):
    served = Served(place)
    program = served.program(served.suggest(), "forks", JIZI_ONE_TRIAL="1")
    waited(program, 0)
    check(served.values(1) == {1: 1.0, 3: 3.0}, f"{served.values(1)}")
    trial = served.study.trial(1)
    check(not trial["checkpoints"] and trial["attempts"][0]["why"] != "of the child", f"{trial}")


def what_the_service_would_not_take_costs_itself_alone(place):
    served = Served(place)
    program = served.program(served.suggest(), "odd_values", JIZI_ONE_TRIAL="1")
    waited(program, 0)
    said = program.log.read_text()
    check(served.values(1).keys() == {1, 2, 3, 4}, f"{served.values(1)}\n{said}")
    check(said.count("left out of its reports") == 1 and said.count("must not fall") == 1 and "no number" in said, said)


def contract_26_a_checkpoint_that_changed_is_not_started_from(place):
    served = Served(place)
    assignment = served.suggest(lease_s=1)
    folder = place.folder / "000001"
    subprocess.run([sys.executable, PROGRAM, "train", "2"], cwd=place.folder, timeout=60, check=True, capture_output=True,
                   env=dict(place.environment, **served.environment_of(assignment, JIZI_ONE_TRIAL="1")))
    saved = served.study.trial(1)["checkpoints"]
    check([c["step"] for c in saved] == [2] and (folder / saved[0]["path"]).read_text() == "weights 2", f"{saved}")
    released = served.suggest(lease_s=1)
    program = served.program(released, "until_stopped", JIZI_ONE_TRIAL="1")
    until(lambda: "reported 3" in program.log.read_text(), "it reports")
    program.terminate()
    waited(program, 0)
    until(lambda: served.study.trial(2)["state"] == "queued", "its lease expires")
    checkpoint = place.folder / "000002" / served.study.trial(2)["checkpoints"][0]["path"]
    checkpoint.write_text("other weights")
    program = served.program(served.suggest(), "until_stopped", JIZI_ONE_TRIAL="1")
    waited(program, 0)
    trial = served.study.trial(2)
    check(trial["state"] == "failed" and "not the one that was registered" in trial["end_why"], f"{trial}")


run_all([
    contract_22_training_goes_on_while_the_service_is_away_and_nothing_counts_twice,
    contract_22_what_kill_9_leaves_is_in_the_outbox,
    an_end_that_the_service_did_not_hear_of_shows_in_the_exit_code,
    sigterm_lets_the_program_save_and_leaves_the_end_to_the_worker,
    contract_9_a_silent_program_keeps_its_lease,
    a_lost_lease_stops_the_program,
    contract_20_every_rank_gets_the_same_at_the_same_step,
    a_forked_child_says_nothing,
    what_the_service_would_not_take_costs_itself_alone,
    contract_26_a_checkpoint_that_changed_is_not_started_from,
])
