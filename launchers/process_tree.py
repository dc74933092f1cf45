"""The descendants of a process and what they use. Imported by the supervisor: the standard library only."""

# pathlib takes longer to import than the supervisor to start.
# ruff: noqa: PTH110, PTH123, PTH208

import contextlib
import os

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # not without CONFIG_PROC_CHILDREN


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below `root`."""
    of_parent = {} if _LISTS_CHILDREN else _all_children()
    pids: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        below = _children(pid) if _LISTS_CHILDREN else of_parent.get(pid, [])
        pids += below
        todo += below
    return pids


def has_children() -> bool:
    """Whether this process has children, running or ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def _children(pid: int) -> list[int]:
    children: list[int] = []
    # A process may end while it is read.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                contextlib.suppress(FileNotFoundError, ProcessLookupError),
                open(f"/proc/{pid}/task/{thread}/children", "rb") as file,
            ):
                children += map(int, file.read().split())
    return children


def _all_children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = _stat(int(name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    return children


def memory_bytes(pids: list[int]) -> int:
    """Return the memory that processes use together, in bytes.

    This is the sum of their private memory plus the largest shared part (libraries, shared segments), counted once
    because ranks share most of theirs.
    """
    own = shared = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:
            _, resident_pages, shared_pages, *_ = map(int, file.read().split())
            own += resident_pages - shared_pages
            shared = max(shared, shared_pages)
    return (own + shared) * _PAGE_BYTES


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it is gone or a zombie."""
    fields = _stat(pid)
    return None if not fields or fields[0] in {b"Z", b"X"} else int(fields[19])


def cpu_ticks(pid: int, *, nice: bool) -> int:
    """Return how many clock ticks a process has run; 0 if it is gone, or, without `nice`, has a positive niceness."""
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if len(fields) > 16 and (nice or int(fields[16]) <= 0) else 0


def _stat(pid: int) -> list[bytes]:
    """Return the fields of proc(5) `stat` after the process's name; none if the process is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []
