#!/usr/bin/env python3
"""Bayesian optimisation beside recorded peers: plays bo_ask_tell on recorded tables and on BBOB, prints what came out.

  bo_bench.py run BO_ASK_TELL --out FILE [--tables DIR] [--bbob] [--dim 5] [--seeds 0-9] [--budget 50] [--workers 1]
              [--name ours] [--method bayes] [--settings JSON] [--noisy]
  bo_bench.py report FILE... [--problems] [--plot FILE.png]
  bo_bench.py speed BO_ASK_TELL [--method bayes]
  bo_bench.py tiny BO_ASK_TELL            a few suggestions on a formula: what ctest runs

A table (*.csv.gz) is a recorded grid: columns of parameters, objective_mean, objective_std. An ordered numeric column of k
levels is an integer 0..k-1, a text column a category. A table with the column top1_by_epoch is a pool of runs at drawn
settings: a suggestion gets the value of the nearest one. Normalised regret: (best so far - table's best) / (table's median -
table's best). BBOB: log10 of the distance to the optimum, instance 1 + seed % 15; needs coco-experiment (pip).
Only `--bbob` and `--plot` need packages: coco-experiment and numpy, matplotlib.
"""
import argparse, csv, gzip, heapq, itertools, json, math, os, random, statistics, subprocess, sys, tempfile, time
from collections import defaultdict
from pathlib import Path


class Table:
    def __init__(self, path):
        self.name = path.name.removesuffix(".csv.gz")
        self.goal = "minimize" if self.name.startswith("hpolib") else "maximize"
        with gzip.open(path, "rt", newline="") as f:
            rows = list(csv.DictReader(f))
        self.names = [c for c in rows[0] if c not in ("objective_mean", "objective_std", "seeds")]
        self.params, code = [], {}
        for name in self.names:
            levels = {r[name] for r in rows}
            try:
                order = sorted(levels, key=float)
                self.params.append({"name": name, "type": "int", "min": 0, "max": len(order) - 1})
                code[name] = {v: i for i, v in enumerate(order)}
            except ValueError:
                order = sorted(levels)
                self.params.append({"name": name, "type": "categorical", "values": order})
                code[name] = {v: v for v in order}
        key = lambda r: tuple(code[n][r[n]] for n in self.names)
        self.value = {key(r): float(r["objective_mean"]) for r in rows}
        self.spread = {key(r): float(r.get("objective_std") or 0) for r in rows}
        self.values = sorted(self.value.values(), reverse=self.goal == "maximize")
        self.best, self.median = self.values[0], statistics.median(self.values)

    def for_seed(self, seed):
        return self

    def evaluate(self, params):
        key = tuple(params[n] for n in self.names)
        return self.value[key], self.spread[key]


class Pool:
    """ImageNet runs at drawn settings, 147 of 512 diverged."""

    def __init__(self, path):
        self.name, self.goal = path.name.removesuffix(".csv.gz"), "maximize"
        with gzip.open(path, "rt", newline="") as f:
            rows = list(csv.DictReader(f))
        spec = [("epochs", "int", 20, 100, lambda r: float(r["epochs"])),
                ("batch_size_log2", "int", 7, 10, lambda r: math.log2(float(r["batch_size"]))),
                ("lr_log10", "float", math.log10(5e-3), math.log10(50), lambda r: math.log10(float(r["lr"]))),
                ("peak", "float", 0, .8, lambda r: float(r["lr_peak_epoch"]) / float(r["epochs"])),
                ("momentum", "float", .7, 1, lambda r: float(r["momentum"])),
                ("weight_decay_log10", "float", -6, -3, lambda r: math.log10(float(r["weight_decay"]))),
                ("label_smoothing", "float", 0, .5, lambda r: float(r["label_smoothing"]))]
        self.params = [{"name": n, "type": t, "min": lo, "max": hi} for n, t, lo, hi, _ in spec]
        self.x = [[(f(r) - lo) / (hi - lo) for _, _, lo, hi, f in spec] for r in rows]
        self.values = [float(r["final_top1"] or 0.001) for r in rows]
        self.best, self.median = max(self.values), statistics.median(self.values)

    def for_seed(self, seed):
        return self

    def evaluate(self, params):
        u = [(params[p["name"]] - p["min"]) / (p["max"] - p["min"]) for p in self.params]
        nearest = min(range(len(self.x)), key=lambda i: sum((a - b) ** 2 for a, b in zip(self.x[i], u)))
        return self.values[nearest], 0.0


class Bbob:
    goal, median = "minimize", None

    def __init__(self, function, dim, seed=None):
        self.function, self.dim, self.name = function, dim, f"bbob-f{function}-d{dim}"
        self.params = [{"name": f"x{i}", "type": "float", "min": -5, "max": 5} for i in range(dim)]
        if seed is None:
            return
        import cocoex
        import numpy
        suite = cocoex.Suite("bbob", f"instances: {1 + seed % 15}", f"dimensions: {dim} function_indices: {function}")
        self.suite, self.f = suite, suite[0]
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:  # The optimum comes as a file in the working directory.
            os.chdir(folder)
            self.f._best_parameter("print")
            self.best = self.f(numpy.loadtxt("._bbob_problem_best_parameter.txt"))
            os.chdir(here)

    def for_seed(self, seed):
        return Bbob(self.function, self.dim, seed)

    def evaluate(self, params):
        return float(self.f([params[p["name"]] for p in self.params])), 0.0


class Program:
    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def call(self, message):
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"the program ended with {self.child.wait()} after {json.dumps(message)[:200]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self):
        self.child.stdin.close()
        self.child.wait(10)


def play(command, problem, seed, budget, workers, noisy=False):
    """Asynchronous workers whose trials last 0.5 to 1.5; the incumbents by number of finished trials."""
    durations = random.Random(f"{problem.name} {seed}")
    noise = random.Random(f"noise {problem.name} {seed}")
    program = Program(command)
    program.call({"start": {"params": problem.params, "goal": problem.goal, "seed": seed}})
    better = (lambda a, b: a > b) if problem.goal == "maximize" else (lambda a, b: a < b)
    running, clock, asked, best, incumbents, ms = [], 0.0, 0, None, [], []
    told_best = None  # In the noisy mode the score is the mean of the trial that was told the best value.
    for finished in range(1, budget + 1):
        while len(running) < workers and asked < budget:
            answer = program.call({"ask": 1})
            ms.append(answer["ms"])
            value, spread = problem.evaluate(answer["params"])
            told = value + (noise.gauss(0, spread) if noisy else 0)
            heapq.heappush(running, (clock + durations.uniform(0.5, 1.5), asked, answer["id"], value, told))
            asked += 1
        clock, _, trial, value, told = heapq.heappop(running)
        if told_best is None or better(told, told_best):
            told_best, best = told, value
            incumbents.append([finished, best])
        program.call({"tell": {"id": trial, "value": told if math.isfinite(told) else None}})
    program.close()
    return {"goal": problem.goal, "best": problem.best, "median": problem.median, "inc": incumbents,
            "mean_ms": round(statistics.mean(ms), 2)}


def numbers(text):
    return [i for part in text.split(",") for a, _, b in [part.partition("-")] for i in range(int(a), int(b or a) + 1)]


def tables(folder):
    for path in sorted(Path(folder).glob("*.csv.gz")):
        with gzip.open(path, "rt") as f:
            header = f.readline()
        if "objective_mean" in header:
            yield Table(path)
        elif "top1_by_epoch" in header:
            yield Pool(path)


def run(a):
    problems = list(tables(a.tables)) if a.tables else []
    if not problems and not (a.bbob and not a.tables):
        print(f"SKIPPED: no tables (*.csv.gz) in {a.tables or 'TABLES, which is not given'}; give TABLES=DIR")
    if a.bbob:
        problems += [Bbob(f, a.dim) for f in (1, 3, 8, 15, 20, 24)]
    Path(a.out).parent.mkdir(parents=True, exist_ok=True)
    command = [a.program, "--method", a.method, "--settings", a.settings]
    with open(a.out, "a") as out:
        for seed, problem in itertools.product(numbers(a.seeds), problems):
            record = {"problem": problem.name, "method": a.name, "seed": seed, "n": a.budget, "workers": a.workers}
            record |= play(command, problem.for_seed(seed), seed, a.budget, a.workers, a.noisy)
            out.write(json.dumps(record) + "\n")


def score(record, n):
    """Normalised regret on a table, log10 of the distance on BBOB."""
    value = [v for i, v in record["inc"] if i <= n][-1]
    gap = abs(value - record["best"])
    return math.log10(max(gap, 1e-8)) if record["median"] is None else gap / abs(record["median"] - record["best"])


def interval(groups, draws=1000):
    """Mean over problems of the mean over seeds, and its bootstrap 95 % interval over the seeds of each problem."""
    rng = random.Random(0)
    means = sorted(statistics.mean(statistics.mean(rng.choices(g, k=len(g))) for g in groups) for _ in range(draws))
    return statistics.mean(map(statistics.mean, groups)), means[int(0.025 * draws)], means[int(0.975 * draws)]


def ranks(values):
    return {m: sum(w < v for w in values.values()) + (sum(w == v for w in values.values()) + 1) / 2 for m, v in values.items()}


def report(a):
    records = []
    for file in a.files:
        for number, line in enumerate(open(file), 1):
            record = json.loads(line)
            if "error" not in record and not {"median", "workers", "inc"} <= record.keys():
                sys.exit(f"{file}:{number}: no record of a run (it has no median, workers or inc); leave this file out")
            records.append(record)
    groups = defaultdict(list)
    for r in records:
        if "error" not in r:
            groups["BBOB" if r["median"] is None else "tables", r["workers"]].append(r)
    for (kind, workers), group in sorted(groups.items()):
        for n in (25, 50, 100):
            cells = defaultdict(list)
            for r in group:
                if r["n"] >= n:
                    cells[r["method"], r["problem"]].append(score(r, n))
            methods, problems = sorted({m for m, _ in cells}), sorted({p for _, p in cells})
            full = [p for p in problems if all((m, p) in cells for m in methods)]
            if not full:
                continue
            family = defaultdict(list)
            for p in full:
                family[p.split("-")[0] if kind == "tables" else p].append(ranks({m: statistics.mean(cells[m, p]) for m in methods}))
            rank = {m: statistics.mean(statistics.mean(r[m] for r in f) for f in family.values()) for m in methods}
            what = "normalised regret" if kind == "tables" else "log10(best - optimum)"
            print(f"\n{kind}, {workers} worker(s), after {n} trials, {len(full)} problems\n")
            print(f"| method | {what} | 95 % interval | mean rank over families | seeds |\n| --- | --- | --- | --- | --- |")
            for m in sorted(methods, key=lambda m: interval([cells[m, p] for p in full], 1)[0]):
                mean, low, high = interval([cells[m, p] for p in full])
                seeds = statistics.mean(len(cells[m, p]) for p in full)
                print(f"| {m} | {mean:.4f} | {low:.4f} to {high:.4f} | {rank[m]:.2f} | {seeds:.1f} |")
            if a.problems:
                print("\n| problem | " + " | ".join(methods) + " |\n|" + " --- |" * (len(methods) + 1))
                for p in full:
                    print(f"| {p} | " + " | ".join(f"{statistics.mean(cells[m, p]):.4f}" for m in methods) + " |")
    if a.plot:
        plot(groups, a.plot)


def plot(groups, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(groups), figsize=(6 * len(groups), 4), squeeze=False)
    for axis, ((kind, workers), group) in zip(axes[0], sorted(groups.items())):
        most = min(r["n"] for r in group)
        for method in sorted({r["method"] for r in group}):
            runs = [r for r in group if r["method"] == method]
            trials = range(1, most + 1)
            by_problem = [[r for r in runs if r["problem"] == p] for p in sorted({r["problem"] for r in runs})]
            axis.plot(trials, [statistics.mean(statistics.mean(score(r, n) for r in rs) for rs in by_problem) for n in trials], label=method)
        axis.set(title=f"{kind}, {workers} worker(s)", xlabel="trials", ylabel="normalised regret" if kind == "tables" else "log10(best - optimum)")
        if kind == "tables":
            axis.set_yscale("log")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def speed(a):
    """Mean of 20 suggestions in a row, refits included, after a history of n trials in 8 dimensions."""
    rng = random.Random(1)
    f = lambda x: 1 + sum((v - .3) ** 2 for v in x) + .1 * sum(math.cos(9 * v) for v in x) + .01 * rng.gauss(0, 1)
    names = [f"x{i}" for i in range(8)]
    for size in (100, 500, 1000, 2000):
        program = Program([a.program, "--method", a.method])
        program.call({"start": {"params": [{"name": n, "type": "float", "min": 0, "max": 1} for n in names], "goal": "minimize", "seed": 1}})
        for _ in range(size):
            x = [rng.random() for _ in names]
            program.call({"tell": {"id": None, "params": dict(zip(names, x)), "value": f(x)}})
        ms = []
        for _ in range(21):
            answer = program.call({"ask": 1})
            ms.append(answer["ms"])
            program.call({"tell": {"id": answer["id"], "value": f([answer["params"][n] for n in names])}})
        program.close()
        print(f"n = {size}: first, from a cold memo, {ms[0]:.0f} ms; mean of the next 20 {statistics.mean(ms[1:]):.1f} ms", flush=True)


class Formula:
    name, goal, best, median = "formula", "maximize", 0.0, -1.0
    params = [{"name": "x", "type": "float", "min": -1, "max": 1}, {"name": "c", "type": "categorical", "values": ["a", "b", "c"]}]

    def evaluate(self, params):
        return -(params["x"] - 0.3) ** 2 - "abc".index(params["c"]), 0.01


def tiny(a):
    for method, workers in (("bayes", 1), ("bayes", 3), ("random", 1)):
        record = play([a.program, "--method", method], Formula(), 1, 15, workers, noisy=workers > 1)
        print(method, f"{workers} worker(s): regret {-record['inc'][-1][1]:.3g} after 15 trials, {record['mean_ms']} ms a suggestion")
        if method == "bayes" and record["inc"][-1][1] < -0.1:
            sys.exit("regret above 0.1 on a formula that is easy")


def main():
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = top.add_subparsers(dest="command", required=True)
    p = sub.add_parser("run")
    p.add_argument("program")
    p.add_argument("--out", required=True)
    p.add_argument("--tables")
    p.add_argument("--bbob", action="store_true")
    p.add_argument("--dim", type=int, default=5)
    p.add_argument("--seeds", default="0-9")
    p.add_argument("--budget", type=int, default=50)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--name", default="ours")
    p.add_argument("--method", default="bayes")
    p.add_argument("--settings", default="{}")
    p.add_argument("--noisy", action="store_true")
    p.set_defaults(function=run)
    p = sub.add_parser("report")
    p.add_argument("files", nargs="+")
    p.add_argument("--problems", action="store_true")
    p.add_argument("--plot")
    p.set_defaults(function=report)
    for name, function in (("speed", speed), ("tiny", tiny)):
        p = sub.add_parser(name)
        p.add_argument("program")
        p.add_argument("--method", default="bayes")
        p.set_defaults(function=function)
    a = top.parse_args()
    a.function(a)


if __name__ == "__main__":
    main()
