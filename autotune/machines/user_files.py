"""Paths of the user's settings and of the figures that were measured on machines."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchers.software.digest import text_digest

# Variables that make a BLAS library use other kernels than those for this processor.
BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE")


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's settings, by the XDG base directory specification."""
    root = Path(environment.get("XDG_CONFIG_HOME", ""))
    # The specification demands that a relative path is ignored.
    return (root if root.is_absolute() else Path(environment.get("HOME", "/"), ".config")) / "autotune"


def figures_file(given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file with the measured figures of a machine.

    A home folder may be shared by nodes of several types, so the path depends on all facts that change the figures: the
    processors and cores that may be used, memory, and the BLAS library with the variables that choose its kernels. It
    does not depend on the host's name, so that nodes of one type share their figures.

    Args:
        given: The facts of the machine, by path.
        environment: The environment of the process.
    """
    deciding = ("cpu.model", "cpu.microarchitecture", "cpu.cores_per_node", "cpu.sockets", "cpu.cache_bytes")
    parts = [f"{path}={given.get(path)}" for path in deciding]
    parts += [f"memory_gib={round(given.get('memory.bytes', 0) / 2**30)}", f"blas={given.get('software.blas')}"]
    parts += [f"{name}={environment[name]}" for name in BLAS_VARIABLES if environment.get(name)]
    model = re.sub(r"[^a-z0-9]+", "-", str(given.get("cpu.model", "unknown")).lower()).strip("-")
    readable = f"{model[:40]}-{given.get('cpu.cores_per_node', 0)}-cores"
    return config_folder(environment) / "measured" / f"{readable}-{text_digest(' '.join(parts))[:10]}.toml"
