"""The model of run times: what a configuration takes where it has not run, and how sure that is."""
