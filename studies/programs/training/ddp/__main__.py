"""The command line."""

import sys

from .lead import run
from .options import settings_of

if __name__ == "__main__":
    sys.exit(run(settings_of(sys.argv[1:])))
