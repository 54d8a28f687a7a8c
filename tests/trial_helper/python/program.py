"""A training program for tests, in a process of its own: program.py MODE ... (a function below)."""
import atexit
import os
import pathlib
import signal
import socket
import sys
import time

import jizi


def say(*words):
    print(*words, flush=True)


def until_file(path):
    while not os.path.exists(path):
        time.sleep(0.02)


def train(steps, trials="0"):
    """Reports every step; a checkpoint every second one."""
    done = 0
    for trial in jizi.trials(next_trial_wait_s=20, report_wait_s=10):
        say("trial", trial.id, os.getpid(), trial.start_step, pathlib.Path(trial.warm_start).read_text() if trial.warm_start else "fresh")
        trial.plan_steps(int(steps))
        for step in range(trial.start_step + 1, int(steps) + 1):
            result = trial.report(step, value=trial.params["x"] * step)
            if step % 2 == 0:
                trial.checkpoint(step, lambda path: pathlib.Path(path).write_text(f"weights {step}"))
            if result.should_stop:
                say("told to stop:", result.why)
                break
            kill = pathlib.Path("..") / "kill"
            if step == 3 and trial.id == 1 and not kill.exists():
                kill.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        if done == int(trials):
            break


def until_stopped():
    """Reports until it is told to stop, saves a checkpoint, leaves."""
    for trial in jizi.trials(report_wait_s=0.5):
        step = 0
        while True:
            step += 1
            say("reported", step)
            result = trial.report(step, value=step)
            if result.should_stop:
                trial.checkpoint(step, lambda path: pathlib.Path(path).write_text("weights"))
                say("left:", result.why)
                break
            time.sleep(0.01)


def steps_until(go):
    """Reports a step every 10 ms until the file is there, then ends."""
    pathlib.Path(go + ".pid").write_text(str(os.getpid()))
    for trial in jizi.trials(report_wait_s=0.2):
        step = 0
        while not os.path.exists(go):
            step += 1
            trial.report(step, value=step).should_stop
            pathlib.Path(go + ".step").write_text(str(step))
            time.sleep(0.01)
        trial.report(step + 1, value=step + 1)
        pathlib.Path(go + ".step").write_text(str(step + 1))


def ends(*how):
    """One way of ending a trial after the other."""
    say("process", os.getpid())
    words = iter(how)
    for trial in jizi.trials(next_trial_wait_s=20):
        word = next(words)
        if word in ("infeasible", "raise-in-with"):
            try:
                with trial:
                    trial.report(1, value=1)
                    raise jizi.Infeasible("too large") if word == "infeasible" else KeyError("no such layer")
            except KeyError:
                pass
            continue
        trial.report(1, value=1)
        if word == "fail":
            trial.fail("no data")
        elif word == "say-infeasible":
            trial.infeasible("never works")
        elif word == "raise":
            raise ValueError("bad learning rate")
        elif word == "raise-infeasible":
            raise jizi.Infeasible("diverged")
        elif word == "exit":
            sys.exit(3)
        elif word == "break":
            break


def goes_on():
    """An exception leaves the loop; the program takes it and asks for trials again."""
    try:
        for trial in jizi.trials(next_trial_wait_s=20):
            trial.report(1, value=1)
            raise RuntimeError("out of memory")
    except RuntimeError:
        pass
    for trial in jizi.trials():
        trial.report(1, value=2)
        break


def unfinished(how):
    atexit.register(say, "handlers ran")
    for trial in jizi.trials(flush_wait_s=0.5):
        say("reported", trial.report(1, value=1).should_stop)
        until_file("gone")
        trial.report(2, value=2)
        if how == "fail":
            trial.fail("no data")
        elif how == "infeasible":
            trial.infeasible("never")
        elif how == "throw":
            raise ValueError("bad")
        say("left")


def ranks(steps, fd):
    """Rank 0 gives its bytes to rank 1 over a socket."""
    link = socket.socket(fileno=int(fd)).makefile("rwb")

    def broadcast(data):
        if os.environ["RANK"] == "0":
            link.write(len(data).to_bytes(8, "big") + data)
            link.flush()
            return data
        return link.read(int.from_bytes(link.read(8), "big"))

    for trial in jizi.trials(broadcast=broadcast, report_wait_s=30, next_trial_wait_s=20):
        say("trial", trial.id, trial.params)
        for step in range(1, int(steps) + 1):
            result = trial.report(step, value=step)
            saved = trial.checkpoint(step, lambda path: pathlib.Path(path).write_text("w")) if step == 2 else None
            say("step", step, saved, result.should_stop)


def forks():
    """A child process (as of a data loader) uses what it inherited, and ends as Python does."""
    for trial in jizi.trials():
        trial.report(1, value=1)
        child = os.fork()
        if child == 0:
            trial.report(2, value=-1)
            trial.checkpoint(2, lambda path: pathlib.Path(path).write_text("child"))
            trial.fail("of the child")
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0, "the child"
        trial.report(3, value=3)
        say("parent", trial.id)
        break


def odd_values():
    for trial in jizi.trials():
        trial.report(1, {"value": 1, "": 2, "a\nb": 3, "\udcff": 4, "long" * 100: 5}, loss=float("nan"))
        trial.report(2, {"value": 2, **{f"m{i}": i for i in range(1200)}})
        trial.report(1, value=9)  # Goes back.
        trial.report(3, value=float("inf"), gradient=jizi.GradientStatistics(1, 1, 0, 8))
        trial.plan_steps(-1)
        try:
            trial.report(4, value="high")
        except TypeError as error:
            say(error)
        trial.report(4, value=4)


globals()[sys.argv[1]](*sys.argv[2:])
