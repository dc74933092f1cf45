"""Which measured figures are this machine's: a home folder may be shared by nodes of several types."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchers.software.digest import text_digest

# These make a BLAS library use other kernels than those for this processor.
BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE")


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's settings of autotune, by the XDG base directory specification."""
    root = Path(environment.get("XDG_CONFIG_HOME", ""))
    # The specification: a relative path must be ignored.
    return (root if root.is_absolute() else Path(environment.get("HOME", "/"), ".config")) / "autotune"


def figures_file(given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the measured figures of a machine are kept; `given` are its facts by path.

    The path depends on all facts that change the figures: the processors and cores that may be used, memory, and the
    BLAS library with the variables that choose its kernels. It does not depend on the host's name: nodes of one type
    share their figures.
    """
    deciding = ("cpu.model", "cpu.microarchitecture", "cpu.cores_per_node", "cpu.sockets", "cpu.cache_bytes")
    parts = [f"{path}={given.get(path)}" for path in deciding]
    parts += [f"memory_gib={round(given.get('memory.bytes', 0) / 2**30)}", f"blas={given.get('software.blas')}"]
    parts += [f"{name}={environment[name]}" for name in BLAS_VARIABLES if environment.get(name)]
    model = re.sub(r"[^a-z0-9]+", "-", str(given.get("cpu.model", "unknown")).lower()).strip("-")
    readable = f"{model[:40]}-{given.get('cpu.cores_per_node', 0)}-cores"
    return config_folder(environment) / "measured" / f"{readable}-{text_digest(' '.join(parts))[:10]}.toml"
