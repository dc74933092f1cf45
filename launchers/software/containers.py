"""Container images, and the runtimes that start programs inside them without root."""

import os
import pwd
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launchers.software.digest import file_digest, text_digest

"""Characters of a digest that are kept."""


@dataclass(frozen=True)
class ContainerRuntime:
    """A program that runs a command inside an image.

    Args:
        name: The name of the program, also in study files.
        options: The words between the program and the command, given the image and the folder of the run, which must be
            the current folder inside and writable.
        variables: The variables that it needs.
    """

    name: str
    options: Callable[[str, str], tuple[str, ...]]
    variables: Callable[[], Mapping[str, str]] = dict


def _apptainer(image: str, folder: str) -> tuple[str, ...]:
    # https://apptainer.org/docs/user/latest/cli/apptainer_exec.html
    return ("exec", "--bind", folder, "--pwd", folder, image)


def _charliecloud(image: str, folder: str) -> tuple[str, ...]:
    # https://hpc.github.io/charliecloud/ch-run.html
    return ("--bind", f"{folder}:{folder}", "--cd", folder, image, "--")


def _of_charliecloud() -> Mapping[str, str]:
    """Return the variables that ch-run needs.

    It insists on $USER, which batch jobs may lack, and shows $TMPDIR as /tmp inside. The ranks of a job exchange files
    in /tmp, so it must be the same outside.
    """
    return {"USER": os.environ.get("USER") or pwd.getpwuid(os.geteuid()).pw_name, "TMPDIR": "/tmp"}  # noqa: S108


RUNTIMES = (
    ContainerRuntime("apptainer", _apptainer),
    ContainerRuntime("singularity", _apptainer),
    ContainerRuntime("ch-run", _charliecloud, _of_charliecloud),
)


@dataclass(frozen=True)
class Container:
    """An image, and the full path of the program that starts it."""

    image: str
    program: str
    runtime: ContainerRuntime = field(compare=False)

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the words that precede a command in `folder` to run it inside the image."""
        return (self.program, *self.runtime.options(self.image, os.fspath(folder.resolve())))


def find_runtime(wanted: str, searched: str | None) -> tuple[ContainerRuntime, str] | None:
    """Return the runtime called `wanted`, or the first available one if that is empty, and its path.

    None if it is not on the search path.
    """
    for runtime in RUNTIMES:
        if wanted in {"", runtime.name} and (path := shutil.which(runtime.name, path=searched)) is not None:
            return runtime, path
    return None


def image_digest(image: str) -> str | None:
    """Return a digest that changes with an image; None if the image does not exist.

    A file is hashed by its content; an image that is a folder by the names, sizes and times of its files, since it has
    tens of thousands. For an address in a registry it is the digest in the address, or None without one.
    """
    if "://" in image:
        return image.rpartition("@")[2] if "@sha256:" in image else None
    path = Path(image)
    if path.is_file():
        return f"sha256:{file_digest(path)}"
    if not path.is_dir():
        return None
    entries = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            status = os.lstat(os.path.join(folder, name))  # noqa: PTH118  tens of thousands of files
            entries.append(f"{os.path.relpath(folder, path)}/{name} {status.st_size} {status.st_mtime_ns}\n")
    return f"folder:{text_digest(''.join(entries))}"
