"""The N-th system call of a kind fails, or the process dies there: what becomes of a session.

Small sessions are run again and again, with one fault each, and then once more without. `library` makes calls fail,
`sessions` are what is run, `twin` says what must hold afterwards, `campaign` runs events by the thousand.

A library that is loaded before the C library was chosen, rather than `strace -e inject` or libfiu. Each event is a fork
of a process that has imported everything, so that it takes a fraction of a second and not the seconds of a start; the
library is armed within the fork, for that process alone, and can be told to let through what only plays the part of
another host. strace would stop at every call of every process and start from nothing; libfiu brings no short writes, no
crash, no clock, and is one more package. What it needs is gcc, which CI has for other studies; calls that a program
makes without the C library pass, but none of ours does that.
"""
