"""One program from several places: the software that a run uses is a parameter."""
