"""Orders: from the request that starts a study, and back to a request that starts another study like it."""

from collections.abc import Collection
from itertools import count
from typing import Any

from pydantic import ValidationError

from autotune.batch.launcher_names import launcher_names
from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError
from autotune.service.catalogue import CatalogueStudy
from autotune.service.models.budgets import LONGEST_NAME
from autotune.service.models.orders import NewStudy
from autotune.supervision import Order
from launchers.cpus import parse_cpu_list


def order_of(entry: CatalogueStudy, new: NewStudy, by: str) -> Order:
    """Return the order to start a study of the catalogue.

    Raises:
        AutotuneError: a field breaks a rule; the message begins with its name.
    """
    try:
        timeout_s = None if new.timeout is None else parse_duration_s(new.timeout)
    except ValueError as error:
        msg = f"timeout: {error}"
        raise AutotuneError(msg) from None
    _check_place(entry, new)
    return Order(
        study=entry.name,
        file=entry.file,
        name=new.name or entry.study.name,
        trials=new.trials,
        timeout_s=timeout_s,
        workers=new.workers,
        seed=new.seed,
        cores=new.cores,
        launcher=new.launcher,
        by=by,
    )


def order_like(order: Order, taken: Collection[str]) -> NewStudy | None:
    """Return the request for another study like this one, under a name that is not `taken`; None if there is none."""
    return new_study_or_none(
        study=order.study,
        name=free_name(order.name, taken),
        trials=order.trials,
        timeout=None if order.timeout_s is None else _in_seconds(order.timeout_s),
        workers=order.workers,
        seed=order.seed,
        cores=order.cores,
        launcher=order.launcher,
    )


def new_study_or_none(**fields: Any) -> NewStudy | None:  # noqa: ANN401  whatever its fields hold
    """Return the request for a study; None if no client can send it: the command line allows more trials."""
    try:
        return NewStudy.model_validate(fields)
    except ValidationError:
        return None


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name with the first number that makes it free, such as qe-2."""
    ends = (f"-{number}" for number in count(2))
    return next(free for end in ends if (free := name[: LONGEST_NAME - len(end)] + end) not in taken)


def _in_seconds(duration_s: float) -> str:
    """Write a duration without an exponent, which `parse_duration_s` does not read."""
    return f"{duration_s:.6f}".rstrip("0").rstrip(".") + "s"


def _check_place(entry: CatalogueStudy, new: NewStudy) -> None:
    """Check the cores and the launcher of a request."""
    for field in ("cores", "launcher"):
        if entry.ask_tell and getattr(new, field) is not None:
            msg = f"{field}: other programs make the runs of {entry.name!r}, so none is started here: leave it out"
            raise AutotuneError(msg)
    if new.cores is not None:
        try:
            parse_cpu_list(new.cores)
        except ValueError as error:
            msg = f"cores: {error}"
            raise AutotuneError(msg) from None
    if new.launcher is not None and new.launcher not in (known := launcher_names()):
        msg = f"launcher: {new.launcher!r} was given; it must be one of {', '.join(known)}"
        raise AutotuneError(msg)
