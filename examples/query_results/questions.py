#!/usr/bin/env python3
"""What people ask of results, through the service.   usage: questions.py ADDRESS STUDY

A file that nobody owns is served so:   jizi serve --db python.db --listen unix:$XDG_RUNTIME_DIR/python.sock
Over TCP JIZI_TOKEN_FILE names the server's FILE.token.
"""
import collections
import os
import sys

import jizi


def main(address, name):
    with jizi.connect(address, os.environ.get("JIZI_TOKEN_FILE", ""), os.environ.get("JIZI_CA_FILE", "")) as service:
        study = service.study(name)
        trials = list(study)

        print("1. The best trial and its parameters")
        best = study.best()
        if best is None:
            print("none yet")
        else:
            print(best["id"], best["objective"], " ".join(f"{key}={value}" for key, value in best["params"].items()))

            print("2. Its learning curve")
            metric = study.info()["metrics"][0]["name"]
            for step, value in study.curve(best["id"], metric).items():
                print(step, value)

        print("3. What failed, and why")
        for trial in trials:
            if trial["state"] in ("failed", "infeasible"):
                print(trial["id"], trial["state"], trial["end_why"])

        print("4. What each parameter did: mean objective by value")
        groups = collections.defaultdict(list)
        for trial in trials:
            if trial["objective"] is not None:
                for key, value in trial["params"].items():
                    groups[key, str(value)].append(trial["objective"])
        for (key, value), found in sorted(groups.items()):
            if len(found) > 1:
                print(key, value, len(found), round(sum(found) / len(found), 4))

        print("5. Where the time went")
        seconds = collections.Counter()
        for trial in trials:
            if trial["ended"] is not None and trial["started"] is not None:
                seconds[trial["state"]] += trial["ended"] - trial["started"]
        for state, total in sorted(seconds.items()):
            print(state, round(total, 1))

        print("6. Trials that were started more than once")
        for trial in trials:
            if len(trial["attempts"]) > 1:
                print(trial["id"], len(trial["attempts"]), max(attempt["start_step"] for attempt in trial["attempts"]))


if len(sys.argv) != 3:
    sys.exit(__doc__)
try:
    main(*sys.argv[1:])
except jizi.Error as error:
    sys.exit(f"questions.py: {error}")
