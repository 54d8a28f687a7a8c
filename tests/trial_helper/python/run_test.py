"""Python programs under the real `jizi run`, and by hand.   usage: run_test.py BUILD_DIR"""
from testing import *


def by_hand_a_program_runs_once_and_says_so_once(place):
    program = place.folder / "hand.py"
    program.write_text("import jizi\nfor t in jizi.trials(defaults={'lr': 0.5, 'n': 3}):\n"
                       "    print(t.id, t.params, t.warm_start, t.start_step, t.report(1, loss=2).should_stop)\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=place.folder, timeout=60, check=True,
                          env=dict(place.environment, JIZI_PARAMS='{"n": 4}'))
    check(done.stdout == "0 {'lr': 0.5, 'n': 4} None 0 False\n", done.stdout)
    check(done.stderr.count("run by hand") == 1, done.stderr)


def contract_19_two_processes_take_all_trials(place):
    place.jizi("run", sweep(place, "train", 2, trials=8, workers=2))
    check(place.states() == {"completed": 8}, f"{place.states()}")
    said = [line.split() for log in place.folder.rglob("stdout.log") for line in log.read_text().splitlines()]
    trials = [words for words in said if words[0] == "trial"]
    check(len({words[1] for words in trials}) == 8, f"{trials}")
    for log in place.folder.rglob("stdout.log"):
        own = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("trial ")]
        check(own == [str(int(log.parent.name))], f"{log} holds the output of {own}")
    processes = {words[2] for words in trials}
    check(len(processes) <= 2, f"not warm: {processes}")
    check(rows(place, "select count(*) from measurements where counts") == [(16,)], "each report counts once")
    check(rows(place, "select distinct total_steps from trials") == [(2,)], "the plan")
    place.nothing_left()


def contract_19_a_command_with_flags_takes_one_trial_a_process(place):
    place.jizi("run", sweep(place, trials=3, command=["${env}", "python3", PROGRAM, "ends", "finish", "${args_json}"]))
    processes = [log.read_text() for log in place.folder.rglob("stdout.log")]
    check(len(set(processes)) == 3 and all(text.count("process") == 1 for text in processes), f"{processes}")


def contract_7_a_killed_program_goes_on_from_its_checkpoint(place):
    place.jizi("run", sweep(place, "train", 5, trials=2, more=", retries: 1"))
    check(place.states() == {"completed": 2}, f"{place.states()}")
    said = next(place.folder.rglob("000001/stdout.log")).read_text() if list(place.folder.rglob("000001/stdout.log")) else ""
    attempts = rows(place, "select attempt, start_step, end from attempts where trial = 1 order by 1")
    check(attempts == [(1, 0, "Failed"), (2, 2, "Finished")], f"{attempts} {said}")
    check("weights 2" in said, said)
    counted = rows(place, "select step, attempt from measurements where trial = 1 and metric = 'value' and counts order by 1")
    check([step for step, _ in counted] == [1, 2, 3, 4, 5], f"{counted}")
    check([attempt for _, attempt in counted] == [1, 1, 2, 2, 2], f"{counted}")
    check(rows(place, "select count(*) from checkpoints where trial = 1") == [(2,)], "checkpoints")


def an_exception_fails_its_trial_with_the_reason(place):
    place.jizi("run", sweep(place, "ends", "raise", trials=2), code=None)
    why = rows(place, "select lower(state), end_why from trials where trial = 1")[0]
    check(why[0] == "failed" and "ValueError: bad learning rate (program.py:" in why[1], f"{why}")


def every_way_of_ending_a_trial(place):
    ways = ["finish", "fail", "say-infeasible", "infeasible", "raise-in-with", "raise-infeasible"]
    place.jizi("run", sweep(place, "ends", *ways, trials=len(ways)), code=None)
    ended = rows(place, "select lower(state), end_why from trials order by trial")
    check([state for state, _ in ended] == ["completed", "failed", "infeasible", "infeasible", "failed", "infeasible"], f"{ended}")
    for (_, why), text in zip(ended, ["", "no data", "never works", "too large", "KeyError: 'no such layer' (program.py:", "diverged"]):
        check(text in why, f"{text!r} is not in {why!r}")


def parameters_that_nobody_read_are_said_once(place):
    place.jizi("run", sweep(place, "ends", "finish", "finish", trials=2))
    before = {log: log.read_text() for log in place.folder.rglob("stderr.log")}
    said = "".join(before.values())
    check(said.count("(x) were never read by this program") == 1, said)
    place.jizi("run", sweep(place, "train", 1, trials=2), "--db", str(place.folder / "read.db"))
    after = [log.read_text() for log in place.folder.rglob("stderr.log") if log not in before]
    check(after and "never read" not in "".join(after), f"{after}")


def an_exit_code_fails_the_trial(place):
    place.jizi("run", sweep(place, "ends", "exit", trials=1), code=None)
    check(place.states() == {"failed": 1}, f"{place.states()}")


def a_break_out_of_the_loop_finishes_the_trial(place):
    place.jizi("run", sweep(place, "ends", "break", trials=2))
    check(place.states() == {"completed": 2}, f"{place.states()}")


def a_program_that_goes_on_after_an_exception_fails_that_trial(place):
    place.jizi("run", sweep(place, "goes_on", trials=2), code=None)
    ended = rows(place, "select lower(state), end_why from trials order by trial")
    check([state for state, _ in ended] == ["failed", "completed"], f"{ended}")
    check("with trial:" in ended[0][1], f"{ended}")


def a_stop_is_obeyed(place):
    run = place.start("run", sweep(place, "until_stopped", trials=2, workers=2))
    until(lambda: place.states().get("running") == 2, "both trials run")
    until(lambda: rows(place, "select count(distinct trial) from measurements") == [(2,)], "both trials report")
    place.jizi("stop", "sweep", "--db", str(place.database))
    run.wait(timeout=DEADLINE_S)
    check(place.states() == {"stopped": 2}, f"{place.states()}")
    check(rows(place, "select count(*) from checkpoints") == [(2,)], "each saved one")
    place.nothing_left()


def contract_22_the_worker_sends_what_a_killed_program_left(place):
    (place.folder / "socket").mkdir(mode=0o700)
    address, go = f"unix:{place.folder}/socket/s", place.folder / "go"
    serve = ["serve", "--db", str(place.database), "--listen", address]
    server = place.start(*serve)
    until(lambda: "serving " in server.log.read_text(), "the server is up")
    worker = place.start("worker", "--server", address, sweep(place, "steps_until", go, trials=1))
    progress = place.folder / "go.step"
    step = lambda: int(progress.read_text() or 0) if progress.exists() else 0
    until(lambda: step() > 5, "the program reports")
    server.kill()
    server.wait()
    away_at = step()
    until(lambda: step() > away_at + 150, "the training goes on for more than the second that a call may hang")
    killed_at = step()
    os.kill(int((place.folder / "go.pid").read_text()), signal.SIGKILL)
    server = place.start(*serve)
    worker.wait(timeout=DEADLINE_S)
    check(place.states() == {"failed": 1}, f"{place.states()}\n{worker.log.read_text()}")
    steps = [row[0] for row in rows(place, "select step from measurements where metric = 'value' and counts order by step")]
    check(steps == list(range(1, len(steps) + 1)), f"a gap or a double: {steps}")
    check(len(steps) > away_at + 50, f"{len(steps)} steps are there; the service went away at {away_at}, the kill came at {killed_at}")
    server.terminate()
    place.ended_with(server, 0)
    place.nothing_left()


run_all([
    contract_22_the_worker_sends_what_a_killed_program_left,
    by_hand_a_program_runs_once_and_says_so_once,
    contract_19_two_processes_take_all_trials,
    contract_19_a_command_with_flags_takes_one_trial_a_process,
    contract_7_a_killed_program_goes_on_from_its_checkpoint,
    an_exception_fails_its_trial_with_the_reason,
    every_way_of_ending_a_trial,
    parameters_that_nobody_read_are_said_once,
    an_exit_code_fails_the_trial,
    a_break_out_of_the_loop_finishes_the_trial,
    a_program_that_goes_on_after_an_exception_fails_that_trial,
    a_stop_is_obeyed,
])
