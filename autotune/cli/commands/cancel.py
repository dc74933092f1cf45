"""`autotune cancel`: cancel the queued jobs of a study."""

from collections.abc import Sequence
from dataclasses import asdict

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, ExistingStorage, StudyName
from autotune.errors import CannotRunHereError
from autotune.storage.address import storage_url


def cancel(name: StudyName, storage: ExistingStorage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """Cancel a study's queued jobs, and stop its process.

    The same `autotune study` command resumes. Exit code 3: some jobs could not be cancelled; try again.
    """
    from autotune.coordination.cancel_jobs import cancel_jobs

    done = cancel_jobs(storage_url(storage), name, lambda text: errors().print(text))
    if as_json:
        print_json(asdict(done))
    else:
        lines = [
            *([f"cancelled {_jobs(done.cancelled)}"] if done.cancelled else []),
            *([f"already ended: {_jobs(done.ended)}; the same study command collects them"] if done.ended else []),
        ]
        if lines or not done.left:
            output().print("\n".join(lines) or f"study {name!r} has no job in a queue")
    if done.left:
        why = f" ({done.trouble})" if done.trouble else ""
        msg = f"could not cancel {_jobs(done.left)}{why}; repeat the command when the scheduler answers"
        raise CannotRunHereError(msg)


def _jobs(ids: Sequence[str]) -> str:
    return f"{len(ids)} job{'s' if len(ids) > 1 else ''}: {', '.join(job_id.split(':')[1] for job_id in ids)}"
