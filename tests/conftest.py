"""What holds for every test: none depends on how fast the machine is, or on how the tests were started."""

import signal

from hypothesis import HealthCheck, settings

# Started in the background of a script they would hand on that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
