"""Every role of a session is killed, alone or with another at the same instant: what becomes of the session.

The processes are real: Ray, supervisors, start commands, jobs of a queue. Only what a program measures is recorded, so
that a session that was struck can be compared with a twin that was left alone. `roles` finds who is to be killed,
`sessions` are what is run, `campaign` runs events by the hundred; what must hold afterwards is that of
`tests.support.faults.twin`.
"""
