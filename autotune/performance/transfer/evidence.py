"""Evidence: what is known of configurations on several machines, and of the machines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.performance.transfer.sources import Source
from autotune.records.measurement import Facts, Setting
from spaces import Space
from spaces.valid_set.valid_set import Indices


@dataclass(frozen=True, eq=False)
class Evidence:
    """The logarithms of efficiency of n configurations on m machines.

    `known`, (m, n), is NaN where nothing was measured; `whole`, (m, n), has the values of `smooth`, (m, n), there.
    `facts` are those of the m machines, and of the one to predict, the last; `traits`, (n, d), are those of the
    configurations.
    """

    known: FloatArray
    whole: FloatArray
    smooth: FloatArray
    facts: tuple[Facts, ...]
    traits: FloatArray

    @classmethod
    def of(cls, space: Space, setting: Setting, sources: Sequence[Source], rows: Indices) -> "Evidence":
        """Return the evidence of `sources` about `rows`, (n, p), for a setting."""
        known = np.array([source.measured_at(rows) for source in sources])
        smooth = np.array([source.smooth_at(rows) for source in sources])
        facts = (*(source.setting.machine_facts for source in sources), setting.machine_facts)
        return cls(known, np.where(np.isnan(known), smooth, known), smooth, facts, space.traits_of(rows))

    def at(self, places: npt.NDArray[np.intp]) -> "Evidence":
        """Return the evidence of some of the configurations."""
        return Evidence(
            self.known[:, places],
            self.whole[:, places],
            self.smooth[:, places],
            self.facts,
            self.traits[places],
        )
