#!/usr/bin/env python3
"""Arrows point down only (docs/design.md): reads every #include and the link graph, and fails on one that points up.
Rooms share namespaces, and the linker merges two definitions of one name without a word: each name stands once (check_names).

usage: layering_test.py SOURCE_DIR LINK_GRAPH      LINK_GRAPH: lines `target: library;library` written by CMake.
"""
import pathlib
import re
import sys

# Room (folder prefix) -> rooms whose headers it may include, besides its own.
ALLOWED = {
    "base": [],
    "proto": ["base"],
    "trial-helper/strategies": [],
    "schedulers": ["base", "trial-helper/strategies"],
    "tuner-service/core": ["base", "schedulers"],
    "tuner-service/store": ["base", "schedulers", "tuner-service/core"],
    "tuner-service/engine": ["base", "schedulers", "tuner-service/core", "tuner-service/store"],
    "tuner-service/rpc": ["base", "proto", "schedulers", "tuner-service/core", "tuner-service/store", "tuner-service/engine"],
    "tuner-service/workers": ["base", "proto"],
    "tuner-service/cli": ["base", "proto", "schedulers", "tuner-service"],
    "trial-helper": ["base", "proto", "trial-helper/strategies"],
    "training-core": ["base", "trial-helper/strategies"],
    "examples": ["base", "trial-helper", "training-core", "proto"],
}
# Generated headers by their include path, and the rooms that may see them.
WIRE = {
    "jizi/v1/": ["proto", "tuner-service/rpc", "tuner-service/workers", "tuner-service/cli", "trial-helper", "examples"],
    "jizi/store/v1/": ["tuner-service/store"],
}
# A pure room calls no clock, thread, file, socket, SQL, gRPC or torch.
PURE = ["schedulers", "tuner-service/core", "trial-helper/strategies", "training-core/plan"]
IMPURE = re.compile(
    r'#include\s*[<"](thread|fstream|filesystem|mutex|condition_variable|future|unistd\.h|fcntl\.h|sys/|netinet/|sqlite3|SQLiteCpp|grpc|torch|ATen|spdlog|iostream)'
    r"|(system_clock|steady_clock|high_resolution_clock)::now|std::random_device|\bgetenv\(|\bstd::rand\(|\bmt19937")
# training-core also builds alone on a bare machine with a GPU.
TRAINING_CORE_FOREIGN = re.compile(r'#include\s*[<"](grpc|absl|google/protobuf|jizi/v1)')

# Link graph: target -> targets of ours that it may link.
LINKS = {
    "jizi_base": [],
    "jizi_client": ["jizi_base", "jizi_proto"],
    "jizi_schedulers": ["jizi_base"],
    "jizi_core": ["jizi_base", "jizi_schedulers"],
    "jizi_store": ["jizi_base", "jizi_schedulers", "jizi_core", "jizi_store_events", "jizi_store_proto"],
    "jizi_engine": ["jizi_base", "jizi_schedulers", "jizi_core", "jizi_store"],
    "jizi_rpc": ["jizi_base", "jizi_schedulers", "jizi_core", "jizi_store", "jizi_engine", "jizi_proto", "jizi_client"],
    "jizi_workers": ["jizi_base", "jizi_proto", "jizi_client"],
    "JiziTrialHelper": ["jizi_base", "jizi_proto", "jizi_client"],
}
OURS = re.compile(r"^(jizi_\w+|JiziTrialHelper)$")


def room_of(path):
    best = max((r for r in ALLOWED if path == r or path.startswith(r + "/")), key=len, default=None)
    return best


def check_includes(root):
    faults, seen = [], 0
    for file in sorted(root.rglob("*")):
        if file.suffix not in (".h", ".cc", ".cu") or not file.is_file():
            continue
        path = file.relative_to(root).as_posix()
        room = room_of(path)
        if room is None:
            continue
        seen += 1
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            where = f"{path}:{number}"
            code = line.split("//")[0]
            if any(path.startswith(p + "/") for p in PURE) and IMPURE.search(code):
                faults.append(f"{where}: a pure room uses {code.strip()}")
            if room == "training-core" and TRAINING_CORE_FOREIGN.search(code):
                faults.append(f"{where}: training-core must build without {code.strip()}")
            include = re.match(r'\s*#include\s*"([^"]+)"', code)
            if not include:
                continue
            name = include.group(1)
            for prefix, rooms in WIRE.items():
                if name.startswith(prefix) and room not in rooms:
                    faults.append(f"{where}: {room} must not see wire messages ({name})")
            target = room_of(name)
            if target is None or target == room or target in ALLOWED[room]:
                continue
            if any(target.startswith(a + "/") for a in ALLOWED[room] if a == "tuner-service"):
                continue
            if room == "examples" and target.startswith("trial-helper"):
                continue
            faults.append(f"{where}: {room} must not include {name} of {target}")
    if seen < 10:
        faults.append(f"only {seen} source files found under {root}: the test looks in the wrong place")
    return faults


# At namespace scope (clang-format leaves it at column 0): what the linker would merge with a namesake of another room.
DEFINES = re.compile(
    r"(?:class|struct)\s+(?:[A-Z_]+\(.*\)\s+)?(\w+)(?![\w:<])(?!.*;\s*$)"  # A class; not a forward declaration, a nested one or a specialisation.
    r"|inline constexpr\s+.*?\b(\w+)(?:\[\w*\])?\s*(?:[={].*)?;?\s*$")
OPENS, CLOSES = re.compile(r"(?:inline )?namespace(?:\s+([\w:]+))?\s*\{\s*$"), re.compile(r"\}\s*// namespace")


def names_of(text):
    """(line, qualified name) of each class and inline constant that a file defines in a named namespace."""
    scopes = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0].rstrip()
        if CLOSES.match(line) and scopes:
            scopes.pop()
        elif opened := OPENS.match(code):
            scopes.append(opened.group(1))  # None: unnamed, where names belong to their file.
        elif scopes and None not in scopes and (found := DEFINES.match(code)):
            yield number, "::".join([*scopes, found.group(1) or found.group(2)])


def check_names(root):
    faults, first, seen = [], {}, 0
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix not in (".h", ".cc") or room_of(path) is None:
            continue
        for number, name in names_of(file.read_text(errors="replace")):
            seen += 1
            where = f"{path}:{number}"
            if name in first:
                faults.append(f"{where}: {name} is defined in {first[name]} too: the linker takes either for both; rename one")
            first.setdefault(name, where)
    if seen < 50:
        faults.append(f"only {seen} names found under {root}: the test looks in the wrong place")
    return faults


def check_the_check():
    """What check_names must see, and what it must leave alone."""
    text = """
namespace a::b {
inline constexpr std::chrono::milliseconds kOne{5000};
inline constexpr char kTwo[] = "x";
inline constexpr std::string_view kLong =
    "x";
class Forward;
class CAPABILITY("mutex") Three final : public Base {
  class Nested {};
};
struct Four {
template <typename T>
class Five {
class Three::Inner : public X {
namespace {
struct Hidden {
}  // namespace
}  // namespace a::b
"""
    names = [name for _, name in names_of(text)]
    expected = ["a::b::" + word for word in ("kOne", "kTwo", "kLong", "Three", "Four", "Five")]
    return [] if names == expected else [f"names_of sees {names}, not {expected}"]


def check_links(graph):
    faults, seen = [], 0
    for line in pathlib.Path(graph).read_text().splitlines():
        target, _, libraries = line.partition(":")
        if target not in LINKS:
            continue
        seen += 1
        for library in filter(None, (part.strip() for part in re.split(r"[;,]", libraries))):
            if OURS.match(library) and library not in LINKS[target] and library not in ("jizi_flags", "jizi_base_headers"):
                faults.append(f"{target} must not link {library}")
    if seen < 5:
        faults.append(f"only {seen} of our targets found in {graph}")
    return faults


def main():
    root = pathlib.Path(sys.argv[1])
    faults = check_includes(root) + check_the_check() + check_names(root) + check_links(sys.argv[2])
    print("\n".join(faults) if faults else "every arrow points down")
    sys.exit(bool(faults))


main()
