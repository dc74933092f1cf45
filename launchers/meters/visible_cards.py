"""Which of a node's cards a job sees, by the variable of their vendor."""

from collections.abc import Callable, Sequence

from .cards import CardReader


def visible_readers(
    there: Sequence[tuple[str, CardReader]],
    variable: tuple[str, str | None],
    wanted: int,
    by_uuid: Callable[[str], CardReader | None] = lambda _: None,
) -> list[CardReader]:
    """Return what reads the cards that a job sees, of those that are `there`: UUID and what reads it, by number.

    The `variable` has a name, and in the environment of the job a text or None. Without it the job sees all that are
    there. Where it sees more than it `wanted`, as in a job that has a whole node, nobody knows which it uses. `by_uuid`
    finds cards that are in no list: instances of divided ones.

    Raises:
        OSError: which cards the job sees is not known, or it sees none.
    """
    name, visible = variable
    if visible is None:
        readers = [reader for _, reader in there]
    else:
        readers = [
            _find_reader(word, there, by_uuid, name) for word in filter(None, map(str.strip, visible.split(",")))
        ]
    if not readers:
        msg = f"no card is there, or {name} shows none"
        raise OSError(msg)
    if len(readers) > wanted:
        msg = f"the job sees {len(readers)} cards, {wanted} are wanted, and {name} does not say which"
        raise OSError(msg)
    return readers


def _find_reader(
    word: str, there: Sequence[tuple[str, CardReader]], by_uuid: Callable[[str], CardReader | None], variable: str
) -> CardReader:
    readers = (reader for number, (uuid, reader) in enumerate(there) if _matches(word, number, uuid))
    found = next(readers, None) or by_uuid(word)
    if found is None:
        msg = f"there is no card {word!r}, which {variable} names"
        raise OSError(msg)
    return found


def _matches(word: str, number: int, uuid: str) -> bool:
    # A UUID may be cut short where the rest is not needed to tell it from others.
    return word == str(number) or (word.startswith("GPU-") and len(word) > 4 and uuid.startswith(word))
