"""One thread for linear algebra: the cores belong to runs, and small matrices gain nothing from more.

Where others use the cores, too, the threads of a BLAS wait for each other: a fit takes several times longer with two.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy and SciPy compute with one thread, in the whole process."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1)
    return context


@cache
def _controller() -> ThreadpoolController:
    # It finds only libraries that are loaded. Slow to import, and the default is proposed without it.
    import scipy.linalg  # noqa: F401, PLC0415

    return ThreadpoolController()
