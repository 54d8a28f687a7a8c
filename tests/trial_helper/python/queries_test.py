"""Results through the Python client, and what it says of mistakes.   usage: queries_test.py BUILD_DIR"""
from testing import *


def raises(kind, what, call):
    try:
        call()
    except kind as error:
        check(what in str(error) or what == getattr(error, "code", None), f"{what!r} is not in {error!r}")
        return error
    raise Fault(f"no {kind.__name__}: {what}")


def finished_study(place):
    """Four trials, the second of which fails."""
    served = Served(place, run_cap=4)
    for how in ("train", "fail", "train", "train"):
        mode = ["ends", "fail"] if how == "fail" else ["train", 2]
        subprocess.run([sys.executable, PROGRAM, *map(str, mode)], check=True, timeout=60, cwd=place.folder, capture_output=True,
                       env=dict(place.environment, **served.environment_of(served.suggest(), JIZI_ONE_TRIAL="1")))
    return served


def everything_is_a_plain_dict(place):
    served = finished_study(place)
    with jizi.connect(served.address) as connection:
        study = connection.study("sweep")
        trials = list(study)
        check([trial["id"] for trial in trials] == [1, 2, 3, 4], f"{trials}")
        json.dumps([trials, study.info(), list(connection.studies()), study.best()])
        best = study.best()
        top = max((trial for trial in trials if trial["state"] == "completed"), key=lambda trial: trial["objective"])
        check(best["id"] == top["id"] and best["objective"] == 2 * best["params"]["x"], f"{best} {top}")
        check(study.curve(best["id"], "value") == {1: best["params"]["x"], 2: best["objective"]}, "the curve")
        check([trial["end_why"] for trial in study.trials("failed")] == ["no data"], "failures")
        ordered = [trial["objective"] for trial in study.trials("completed", sort="objective", descending=True)]
        check(ordered == sorted(ordered, reverse=True) and len(ordered) == 3, f"{ordered}")
        check(best["checkpoints"][0]["step"] == 2 and best["attempts"][0]["end"] == "finished", f"{best}")
        check(best["created"] <= best["started"] <= best["ended"], f"{best}")
        info = study.info()
        check(info["counts"]["completed"] == 3 and info["counts"]["failed"] == 1 and info["state"] == "finished", f"{info}")
        check(info["metrics"] == [{"name": "value", "goal": "maximize", "target": None}], f"{info}")


def a_trial_of_ones_own_runs_first(place):
    served = Served(place)
    added = served.study.enqueue({"x": 1.25})
    check(added["state"] == "queued" and added["params"] == {"x": 1.25}, f"{added}")
    check(served.suggest().trial.id == added["id"], "it is handed out first")
    raises(jizi.Error, "INVALID_PARAMETERS", lambda: served.study.enqueue({"x": 9.0}))
    raises(ValueError, "finite", lambda: served.study.enqueue({"x": float("nan")}))


def more_trials_than_a_page(place):
    served = Served(place, run_cap=1000)
    for _ in range(450):
        served.study.enqueue({"x": 1.5})
    check([trial["id"] for trial in served.study] == list(range(1, 451)), "pages")


def values_keep_their_types(place):
    from jizi._wire import from_value, to_value
    for value in (1, 1.0, "1", True, False, None, [1, "a", None], {"b": [1.5], "a": 2}, "ä", -(2**63), 1e-300):
        again = from_value(to_value(value))
        check(again == value and type(again) is type(value), f"{value!r} became {again!r}")
    raises(ValueError, "64 bits", lambda: to_value(2**63))
    raises(ValueError, "no value", lambda: to_value({1, 2}))


def mistakes_are_said_in_words(place):
    served = Served(place)
    raises(jizi.Error, "STUDY_NOT_FOUND", lambda: jizi.connect(served.address).study("other").best())
    raises(jizi.Error, "TRIAL_NOT_FOUND", lambda: served.study.trial(99))
    raises(ValueError, "give one of queued, running", lambda: list(served.study.trials("done")))
    check(served.study.best() is None, "there is none yet")
    raises(jizi.Error, "host:port", lambda: jizi.connect("localhost"))
    raises(jizi.Error, "107 bytes", lambda: jizi.connect("unix:" + "/x" * 80))
    raises(jizi.Error, "token file", lambda: jizi.connect("localhost:1", token_file=str(place.folder / "none")))
    served.kill()
    error = raises(jizi.Error, "UNREACHABLE", lambda: jizi.connect(served.address).study("sweep").info())
    check("server is running" in error.mend, f"{error!r}")


def tcp_with_the_token(place):
    server = place.start("serve", "--db", "team.db", "--listen", "127.0.0.1:0")
    line = until(lambda: [l for l in server.log.read_text().splitlines() if l.startswith("serving ")], "the server is up")[0]
    address = line.split(" on ")[1]
    raises(jizi.Error, "TOKEN_MISSING", lambda: list(jizi.connect(address).studies()))
    check(list(jizi.connect(address, token_file=str(place.folder / "team.db.token")).studies()) == [], "no study yet")


def the_environment_is_judged(place):
    for variables, what in [({"JIZI_ENDPOINT": "unix:/x"}, "JIZI_STUDY"), ({"JIZI_ENDPOINT": "unix:x"}, "whole path"),
                            ({"JIZI_ENDPOINT": "unix:/x", "JIZI_STUDY": "s", "JIZI_TRIAL": "1", "JIZI_ATTEMPT": "1", "JIZI_LEASE": "zz"}, "32 hex"),
                            ({"JIZI_ENDPOINT": "nonsense", "JIZI_STUDY": "s"}, "JIZI_ENDPOINT"), ({"JIZI_PARAMS": "[1]"}, "JIZI_PARAMS"),
                            ({"JIZI_ENDPOINT": "h:1", "JIZI_STUDY": "s", "JIZI_TOKEN_FILE": "none"}, "whole path"), ({"RANK": "x"}, "RANK")]:
        done = subprocess.run([sys.executable, "-c", "import jizi\njizi.trials()"], capture_output=True, text=True, cwd=place.folder,
                              timeout=60, check=False, env=dict(place.environment, **variables))
        check(done.returncode == 1 and "ValueError: jizi" in done.stderr and what in done.stderr, f"{variables}: {done.stderr}")


run_all([
    everything_is_a_plain_dict,
    a_trial_of_ones_own_runs_first,
    more_trials_than_a_page,
    values_keep_their_types,
    mistakes_are_said_in_words,
    tcp_with_the_token,
    the_environment_is_judged,
])
