"""All parsers of text from outside, each with initial inputs.

`tests/test_parsers.py` reads these inputs, and `benchmarks/fuzz.py` changes them.
"""

from tests.support.fuzzing import answers, files, outputs, stored

TARGETS = (*files.TARGETS, *outputs.TARGETS, *answers.TARGETS, *stored.TARGETS)
