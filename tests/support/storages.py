"""Read the rows of a storage, and create storages as another program or another version writes them."""

import optuna
import sqlalchemy as sa
from optuna.distributions import IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial


def foreign(url, name="another program's"):
    """Store a study of another program whose attributes have names that autotune uses, too."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=RDBStorage(url), study_name=name)
    study.set_user_attr("verdict", {"winner": 0})
    params, distributions = {"pause": 1}, {"pause": IntDistribution(1, 6)}
    attributes = {"bound": 3.0}
    study.add_trial(
        create_trial(
            state=TrialState.COMPLETE, params=params, distributions=distributions, value=1.0, user_attrs=attributes
        )
    )


def rows(url):
    """Return all rows of a storage by table, without its version."""
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    with engine.connect() as connection:
        metadata.reflect(connection)
        found = {
            name: sorted(map(repr, connection.execute(sa.select(table)).all()))
            for name, table in metadata.tables.items()
            if name != "autotune_schema"
        }
    engine.dispose()
    assert any(found.values()), "there is nothing in this storage"
    return found


def version(url):
    """Return the version of a storage."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT version FROM autotune_schema")).scalar_one()
    engine.dispose()
    return found


def set_version(url, version):
    """Set the version of a storage; 0 removes it."""
    if version:
        _change(url, f"UPDATE autotune_schema SET version = {int(version)}")
    else:
        _change(url, "DROP TABLE autotune_schema")


def set_revision(url, revision):
    """Set the revision of Optuna's tables."""
    _change(url, f"UPDATE alembic_version SET version_num = '{revision}'")


def _change(url, statement):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement)).rowcount != 0
    engine.dispose()
