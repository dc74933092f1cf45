"""The protocol of leases as a model: coordinators that fall silent, die between any two statements, or hear no answer.

Whatever happens, no job is stored twice, what was acknowledged stays stored, and who lost a lease stores nothing.
"""

import os
import random
from collections import Counter
from functools import cache

import pytest
import sqlalchemy as sa

from autotune.coordination.coordinators import SILENT_S
from autotune.records.study import Run
from autotune.storage.leases import LEASES
from autotune.storage.run_log import RUNS, SqlRunLog
from tests.support.fakes import took

# A long run of it: LEASE_HISTORIES=100000, and LEASE_FIRST where another one goes on.
HISTORIES, FIRST = (int(os.environ.get(f"LEASE_{name}", default)) for name, default in (("HISTORIES", 0), ("FIRST", 0)))
STEPS = 12
# The statement before which a coordinator dies; most never do.
DIES_AT = (None, None, None, 0, 1, 2, 3)
RECORDS = sa.select(RUNS.c.record)
PASS = sa.update(LEASES).values(heartbeat_s=LEASES.c.heartbeat_s - (SILENT_S + 1))


class DiedError(Exception):
    """A coordinator was killed: its transaction is undone."""


class Protocol:
    """Three coordinators of a study; `holds` are the runs that each believes to have in flight."""

    def __init__(self, engine):
        self.engine = engine
        SqlRunLog.create_table(engine)
        sa.event.listen(engine, "before_cursor_execute", self.statement)
        self.log, self.left = SqlRunLog(engine, "1-a"), None
        self.begin()

    def begin(self):
        """Begin a history: nothing is stored, and nobody has anything."""
        with self.engine.begin() as connection:
            for table in (RUNS, LEASES):
                connection.execute(sa.delete(table))
        self.book = cache(self.log.leases)
        self.any = self.book("")
        self.lives = [0] * 3
        self.holds = [set() for _ in range(3)]
        self.made, self.acknowledged = 0, set()

    def statement(self, *_):
        if self.left is not None:
            if self.left == 0:
                self.left = None
                raise DiedError
            self.left -= 1

    def name(self, who):
        return f"host{who}:1:{self.lives[who]}"

    def own(self, who):
        return self.book(self.name(who))

    def owners(self):
        return {lease.place: lease.holder for lease in self.any.all()}

    def does(self, who, dies_at, use):
        """Do something that a coordinator may not survive; a new one begins in its place and knows nothing."""
        self.left = dies_at
        try:
            return use()
        except DiedError:
            self.lives[who] += 1
            self.holds[who] = set()
            return None
        finally:
            self.left = None

    def launch(self, who, dies_at):
        self.made += 1
        place = f"{self.made:05d}"
        if self.does(who, dies_at, lambda: self.own(who).take(place, {})):
            self.holds[who].add(place)

    def inherit(self, who, dies_at):
        for lease in self.any.all():
            if lease.holder != self.name(who):
                taken = self.does(
                    who, dies_at, lambda lease=lease: self.own(who).take_over(lease.place, lease.holder, SILENT_S)
                )
                if taken:
                    self.holds[who].add(lease.place)

    def is_suspended(self, who, by):
        """Let one be silent for so long that another one takes it for dead."""
        if not self.holds[who]:
            self.launch(who, None)
        self.time_passes({0, 1, 2} - {who})
        self.inherit(by, None)

    def time_passes(self, alive):
        with self.engine.begin() as connection:
            connection.execute(PASS)
        for who in alive:
            self.own(who).heartbeat()

    def ends(self, who, dies_at, unheard, number):
        places = sorted(self.holds[who])[: number + 1]
        runs = [Run({}, 0, outcome=took(1.0), started=place, job={"folder": place}) for place in places]
        owners = self.owners()
        owned = {place for place in places if owners.get(place) == self.name(who)}
        before = self.stored()
        lost = self.does(who, dies_at, lambda: self.log.extend(runs, places, self.name(who)))
        new = self.stored() - before
        assert set(new) <= owned, "who lost a lease stores nothing"
        if lost is None:
            assert not new, "all or nothing"
            return
        if not unheard:
            # Else it does not know, and stores them again.
            self.holds[who] -= set(places)
            self.acknowledged |= set(places) - set(lost)

    def gives_up(self, who, dies_at):
        for place in sorted(self.holds[who])[:1]:
            self.does(who, dies_at, lambda place=place: self.own(who).release(place))
            self.holds[who].discard(place)

    def stored(self):
        with self.engine.connect() as connection:
            return Counter(record["started"] for record in connection.scalars(RECORDS))

    def each_once_and_none_lost(self):
        stored = self.stored()
        assert all(count == 1 for count in stored.values())
        assert self.acknowledged <= stored.keys()

    def step(self, draw):
        """Let one of them do something, and look at what is stored."""
        who, dies_at = draw.randrange(3), draw.choice(DIES_AT)
        match draw.randrange(5):
            case 0:
                self.launch(who, dies_at)
            case 1:
                self.inherit(who, dies_at)
            case 2:
                self.is_suspended(who, draw.randrange(3))
            case 3:
                self.ends(who, dies_at, draw.random() < 0.3, draw.randrange(4))
            case _:
                self.gives_up(who, dies_at)
        self.each_once_and_none_lost()


@pytest.mark.slow
@pytest.mark.timeout(0 if HISTORIES else 600)
@pytest.mark.parametrize(("kind", "histories"), [("sqlite", 300), ("postgresql", 20)])
def test_no_history_doubles_or_loses_a_run_or_lets_who_lost_a_lease_store_it(request, kind, histories):
    url = "sqlite://" if kind == "sqlite" else request.getfixturevalue(kind)
    engine = sa.create_engine(url, poolclass=sa.StaticPool)
    model = Protocol(engine)
    for seed in range(FIRST, FIRST + (HISTORIES or histories)):
        draw = random.Random(seed)
        model.begin()
        for _ in range(STEPS):
            model.step(draw)
    engine.dispose()
