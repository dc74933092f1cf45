"""Kill each process of a session, alone or together with another one, and check how the session recovers.

The processes are real: supervisors, start commands, jobs of a queue. Only the measured values are recorded, so
that a session can be compared with an undisturbed twin. `roles` finds the processes, `sessions` defines what is run,
`campaign` runs hundreds of events, and `tests.support.faults.twin` checks the result.
"""
