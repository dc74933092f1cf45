"""Readers of bars: those of Keras and Lightning, and of loops with tqdm.

Formats: keras/src/utils/progbar.py of Keras 2 and 3; pytorch/callbacks/progress/{tqdm,rich}_progress.py of Lightning.
"""

import re

from objectives.base import Progress
from objectives.training.lines import ANSI, NUMBER, numbers, states
from objectives.training.plain import metrics_in

# `25/25 [====] - 1s 38ms/step - loss: 0.69`, `25/25 ━━━━ 1s 38ms/step - loss: 0.69`, `25/25 - 1s - loss: 0.69`
_KERAS_EPOCH = re.compile(r"Epoch (\d{1,15})/\d{1,15}")
_KERAS_FINAL = re.compile(
    r"(\d{1,15})/(\d{1,15}) (?:\[={1,500}\] -|━{1,500}|-) \d{1,15}s(?: \d{1,15}[mu]?s/[a-z]{1,20})? - "
)
_KERAS_METRIC = re.compile(rf"([^:]{{1,200}}): ({NUMBER})")


class Keras:
    """Reads one step for each epoch.

    Keras prints no `Epoch 1/1` for a single epoch, so the first final line may come without. `evaluate` prints lines
    like the final ones. A later line of the epoch counts only if it has all of its metrics and more: Keras 3 with a
    checkpoint callback prints the full bar twice, without and with the validation.
    """

    def __init__(self) -> None:
        self._epoch = 1
        self._said: frozenset[str] = frozenset()

    def read(self, line: str) -> Progress | None:
        """Read the next line."""
        state = states(line)[-1]
        if begun := _KERAS_EPOCH.fullmatch(state):
            self._epoch, self._said = int(begun[1]), frozenset()
            return None
        final = _KERAS_FINAL.match(state)
        if final is None or int(final[1]) != int(final[2]):
            return None
        parts = state[final.end() :].split(" - ")
        pairs = [match.groups() for part in parts if (match := _KERAS_METRIC.fullmatch(part.strip()))]
        names = frozenset(name for name, _ in pairs)
        if not names > self._said:
            return None
        self._said = names
        return Progress(self._epoch, numbers(pairs))


# `Epoch 3: 100%|██████████| 25/25 [00:01<00:00, 20.1it/s, v_num=0, val_auc=0.51]`; cut at the terminal's width, if any.
# Own loops: `Epoch 3/10 [train]: 100%|...`, `Training epoch 3, loss 0.5: 100%|...`.
_BAR = (
    r"(?P<rest>[^%|]{0,200}?)[:\s]\s{0,4}\d{1,3}%\|[^|]{0,1000}\| {0,8}(?P<at>\d{1,15})/(?P<of>\d{1,15})"
    r" \[(?P<items>[^\]]{0,8000})(?P<end>\]?)"
)
_SET = r"(?:train|val|test|eval|dev)[a-z]{0,8}"
_TQDM = re.compile(
    rf"\[?(?:{_SET}[ :|]{{1,20}})?epoch[ :#]{{0,3}}\[?(?P<epoch>\d{{1,15}})(?P<total> ?/ ?\d{{1,15}})?\]?{_BAR}",
    re.IGNORECASE,
)
_TQDM_RESULTS = re.compile(rf"\[?{_SET}(?![a-z]){_BAR}", re.IGNORECASE)
# tqdm also pads words: `nan.0`.
_TQDM_METRIC = re.compile(
    rf"([^=\s]{{1,200}}?)(?:=|(?<=[A-Za-z_]): )({NUMBER})(?:\.0?)?"
)  # it also pads words: `nan.0`
# What only Lightning prints.
_SANITY = ("Sanity", "Validation sanity", "Validating", "Validation DataLoader", "Validation: 0it", "Training: 0it")
# `Epoch 4/4  ━━━━━ 25/25 0:00:48 • 0:00:00 0.48it/s v_num: 2.000 val_auc: 0.51`; what is too long continues below
_RICH = re.compile(
    r"Epoch (\d{1,15})(?:/\d{1,15})?\s{1,20}[━╸╺-]{1,1000} (\d{1,15})/(\d{1,15})\s{1,20}"
    r"[\d:-]{1,20} • [\d:-]{1,20}\s{1,20}[\d.]{1,20}it/s(?!\S)"
)
_RICH_METRIC = re.compile(rf"(?<!\S)(\S{{1,200}}):\s{{1,400}}({NUMBER})(?!\S)")
_RICH_BELOW = re.compile(r"\s{10}")
_RICH_CHARACTERS = 8000
_VERSION = "v_num"  # Lightning's number of the run, not a metric


class Bars:
    """Reads the bars of Lightning, and of loops with tqdm that a script has of its own.

    Lightning counts epochs from 0; the step is the number of finished epochs. Until an epoch's validation is over, a
    full bar shows the validation of the epoch before. So if a run validates (it begins with a sanity check), only bars
    after the validation count.

    A bar of one's own begins with the number that the script prints. Its epochs count from 0 if the first one does.
    """

    def __init__(self, *, is_lightning: bool | None = None) -> None:
        """Begin before the first line; None leaves it to the lines whether they are Lightning's."""
        self._is_lightning = is_lightning
        self._first: int | None = None
        self._epoch = -1
        self._validates = False
        self._validated = False
        self._rich: tuple[int, str] | None = None

    def read(self, line: str) -> Progress | None:
        """Read the next line."""
        if self._rich is not None and _RICH_BELOW.match(line):
            return self._read_rich(self._rich[0], f"{self._rich[1]} {ANSI.sub('', line)}")
        self._rich = None
        newest = None
        for state in states(line):
            newest = self._read_state(state) or newest
        return newest

    def _read_state(self, state: str) -> Progress | None:
        if self._is_lightning is None and (state.startswith(_SANITY) or f"{_VERSION}=" in state):
            self._is_lightning = True
        if state.startswith(("Validati", "Validate", "Sanity")):
            self._validates = self._validated = True
        if bar := _TQDM.match(state):
            return self._read_tqdm(bar)
        if (bar := _TQDM_RESULTS.match(state)) and not self._is_lightning and self._first is not None:
            return self._metrics_of(bar)
        if (bar := _RICH.match(state)) and bar[2] == bar[3]:
            # Rich bars are printed when they are stopped, after the validation.
            return self._read_rich(int(bar[1]) + 1, state[bar.end() :])
        return None

    def _read_tqdm(self, bar: re.Match[str]) -> Progress | None:
        epoch = int(bar["epoch"])
        self._first = epoch if self._first is None else self._first
        if epoch != self._epoch:
            self._epoch, self._validated = epoch, False
        if self._is_lightning and self._validates and not self._validated:
            return None
        return self._metrics_of(bar)

    def _metrics_of(self, bar: re.Match[str]) -> Progress | None:
        # 100% may be a rounded 99.7%.
        if bar["at"] != bar["of"]:
            return None
        items = bar["items"].split(",")
        complete = items if bar["end"] else items[:-1]
        matches = [_TQDM_METRIC.fullmatch(item.strip()) for item in complete]
        found = metrics_in(bar["rest"]) or {}
        found |= numbers(match.groups() for match in matches if match and match[1] != _VERSION)
        return Progress(self._epoch + (1 if self._is_lightning or not self._first else 0), found)

    def _read_rich(self, step: int, text: str) -> Progress | None:
        known = text[:_RICH_CHARACTERS]
        self._rich = (step, known)
        pairs = [match.groups() for match in _RICH_METRIC.finditer(known) if match[1] != _VERSION]
        return Progress(step, numbers(pairs)) if pairs else None
