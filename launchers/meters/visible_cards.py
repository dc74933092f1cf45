"""Which of a node's cards a job sees, from the variable of their vendor."""

from collections.abc import Callable, Sequence

from .cards import CardReader


def visible_readers(
    there: Sequence[tuple[str, CardReader]],
    variable: tuple[str, str | None],
    wanted: int,
    by_uuid: Callable[[str], CardReader | None] = lambda _: None,
) -> list[CardReader]:
    """Return the readers of the cards that a job sees.

    A job that sees more cards than it wants, for example on a whole node, gives no hint which it uses.

    Args:
        there: The UUID and the reader of each card of the node, by number.
        variable: The variable's name, and its value in the job's environment or None, which shows all cards.
        wanted: How many cards the job wants.
        by_uuid: Finds cards that `there` lacks: instances of divided ones.

    Raises:
        OSError: It is not known which cards the job sees, or it sees none.
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
    # A UUID may be abbreviated as long as it stays unique.
    return word == str(number) or (word.startswith("GPU-") and len(word) > 4 and uuid.startswith(word))
