"""Makes jizi/v1/*_pb2.py and their .pyi from the wire's .proto files while the package is built.

With grpcio-tools where pip installs it, else with the `protoc` of the system (no network,
--no-build-isolation).
"""

import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = ("error", "types", "tune_service")


def proto_folder() -> pathlib.Path:
    """In the tree ../../proto; in a source distribution its copy."""
    for folder in (HERE / "proto", HERE.parent.parent / "proto"):
        if (folder / "jizi/v1/types.proto").exists():
            return folder
    sys.exit(
        "setup.py: proto/jizi/v1 is not beside this folder: build from Jizi's tree, or from its "
        "source distribution"
    )


def generate(target: pathlib.Path) -> None:
    arguments = [f"--python_out={target}", f"--pyi_out={target}", f"-I{proto_folder()}"]
    arguments += [f"jizi/v1/{name}.proto" for name in PROTOS]
    try:
        import grpc_tools
        from grpc_tools import protoc

        well_known = str(pathlib.Path(grpc_tools.__file__).parent / "_proto")
        code = protoc.main(["protoc", *arguments, f"-I{well_known}"])
    except ImportError:
        found = shutil.which("protoc")
        if found is None:
            sys.exit(
                "setup.py: there is neither grpcio-tools nor protoc: pip install grpcio-tools, or "
                "apt-get install protobuf-compiler"
            )
        code = subprocess.run([found, *arguments], check=False).returncode
    if code != 0:
        sys.exit(f"setup.py: protoc ended with {code}")
    text = '"""The messages of the wire, generated from proto/jizi/v1."""\n'
    (target / "jizi/v1/__init__.py").write_text(text)


class BuildWithStubs(build_py):
    def run(self) -> None:
        super().run()
        # An editable installation reads the sources where they are.
        editable = getattr(self, "editable_mode", False)
        target = HERE / "src" if editable else pathlib.Path(self.build_lib)
        (target / "jizi/v1").mkdir(parents=True, exist_ok=True)
        generate(target)


class SdistWithProtos(sdist):
    def make_release_tree(self, base_dir, files) -> None:
        super().make_release_tree(base_dir, files)
        target = pathlib.Path(base_dir) / "proto/jizi/v1"
        target.mkdir(parents=True, exist_ok=True)
        for name in PROTOS:
            shutil.copy(proto_folder() / f"jizi/v1/{name}.proto", target)


setup(cmdclass={"build_py": BuildWithStubs, "sdist": SdistWithProtos})
