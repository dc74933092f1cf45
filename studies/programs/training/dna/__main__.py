"""The command: read the options, start the other ranks, and train; `rank` has the exit codes."""

import sys
import traceback

from .followers import FAILED, Followers
from .rank import run
from .settings import from_command_line


def main() -> int:
    """Run the program; return its exit code."""
    settings = from_command_line(sys.argv[1:])
    if settings.ranks == 1:
        return run(settings)
    followers, code = Followers(settings, run), FAILED
    try:
        code = run(settings, meeting=followers.meeting)
    except (RuntimeError, OSError, ValueError):
        traceback.print_exc()
    finally:
        followers.end(code)


if __name__ == "__main__":
    sys.exit(main())
