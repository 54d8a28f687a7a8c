"""The PyTorch example under the real `jizi run`, killed and gone on with.   usage: torch_test.py BUILD_DIR"""
from testing import *


def torch_python():
    """An interpreter that has torch and can read this environment's packages: of the same minor version."""
    for python in (os.environ.get("JIZI_TORCH_PYTHON", ""), sys.executable, "/usr/bin/python3"):
        test = f"import sys, torch; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
        if python and os.path.exists(python) and subprocess.run([python, "-c", test], capture_output=True, check=False).returncode == 0:
            return python
    return None


def pytorch_on_fashion_mnist(place):
    packages = next(pathlib.Path(BIN).parent.glob("lib/python3*/site-packages"))
    (place.folder / "bin").mkdir()
    wrapper = place.folder / "bin/python3"
    wrapper.write_text(f"#!/bin/sh\nPYTHONPATH={packages} exec {PYTHON} \"$@\"\n")
    wrapper.chmod(0o700)
    place.environment["PATH"] = f"{place.folder}/bin:/usr/bin:/bin"
    path = copied(place, "fashion_mnist_python", "sweep.yaml", "  train_examples: {value: 600}\n")
    path.write_text(path.read_text().replace("epochs: {value: 3}", "epochs: {value: 2}").replace("run_cap: 12", "run_cap: 4"))
    run = place.start("run", str(path), "--db", str(place.database))
    until(lambda: run.poll() is not None or place.states().get("completed", 0) + place.states().get("infeasible", 0) > 0, "a trial ends")
    run.kill()
    run.wait()
    place.jizi("run", str(path), "--db", str(place.database), "--resume")
    states = place.states()
    check(sum(states.values()) == 4 and set(states) <= {"completed", "infeasible"}, f"{states}")
    ended = rows(place, "select count(*) from trials where lower(state) = 'completed'")[0][0]
    check(rows(place, "select count(distinct trial) from checkpoints")[0][0] >= ended > 0, "checkpoints")
    check(rows(place, "select count(*) from measurements where metric = 'val_accuracy' and counts")[0][0] >= 2 * ended, "curves")
    place.nothing_left()


needs_data()
PYTHON = torch_python()
if PYTHON is None:
    print("SKIPPED: no Python here can import torch (JIZI_TORCH_PYTHON names one): examples/fashion_mnist_python is not run", file=sys.stderr)
    sys.exit(77)
run_all([pytorch_on_fashion_mnist])
