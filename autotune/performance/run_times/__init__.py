"""The model of run times: the time of a configuration where it has not run, and how certain it is."""
