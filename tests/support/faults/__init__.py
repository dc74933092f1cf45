"""Inject a fault at the N-th system call of a kind, and check how the session recovers.

Each event runs a small session with one fault, and then the same command again without faults. `library` makes calls
fail, `sessions` defines what is run, `twin` checks the result, and `campaign` runs thousands of events.

A preloaded library injects the faults, not `strace -e inject` or libfiu. Each event is a fork of a process that has
imported everything, so it takes a fraction of a second. The library is armed inside the fork, for that process only,
and can let calls pass that stand for another host. strace would stop at every call of every process and start each
session from nothing; libfiu has no short writes, crashes or clock jumps, and is one more package. The library needs
gcc, which other studies need in CI anyway. It does not see calls that bypass the C library; our programs make none.
"""
