"""The helper's public header needs the standard library alone, in C++17, and nothing of ours but itself."""

import subprocess
import sys
import tempfile

compiler, source = sys.argv[1:]
with tempfile.NamedTemporaryFile("w", suffix=".cc") as program:
    program.write('#include "trial-helper/jizi_trial_helper.h"\nint main() {}\n')
    program.flush()
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", source]
    subprocess.run([compiler, *flags, "-fsyntax-only", program.name], check=True)
    listed = subprocess.run([compiler, *flags, "-M", program.name], check=True, capture_output=True, text=True).stdout
headers = listed.replace("\\\n", " ").split()[2:]
ours = [h for h in headers if h.startswith(source)]
foreign = [h for h in headers if any(f"/{name}" in h for name in ("absl/", "google/", "grpc", "jizi/v1/", "nlohmann", "openssl"))]
if ours != [f"{source}/trial-helper/jizi_trial_helper.h"] or foreign:
    sys.exit(f"the public header drags in {ours} {foreign}")
