"""The model of run times: predicts the time of a configuration that has not run, with its uncertainty."""
