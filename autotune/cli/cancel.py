"""`autotune cancel`: no job of a study is left in the queue."""

from autotune.cli.common import DEFAULT_STORAGE, AsJson, Storage, StudyName, errors, output, print_json
from autotune.storage_url import storage_url


def cancel(name: StudyName, storage: Storage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """End the jobs of a study, and whoever tunes it; what was measured stays, and the same study command goes on."""
    from autotune.cancelling import cancel_jobs  # noqa: PLC0415  Optuna takes a second to import

    ended = cancel_jobs(storage_url(storage), name, lambda text: errors().print(text, markup=False))
    if as_json:
        print_json({"cancelled": ended})
        return
    numbers = ", ".join(job_id.split(":")[1] for job_id in ended)
    said = f"cancelled {len(ended)} jobs: {numbers}" if ended else f"study {name!r} has no job in a queue"
    output().print(said, markup=False)
