"""Files that are replaced whole: a reader finds the old content or the new one, never a part."""

import os
import threading
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, text: str, *, private: bool = False, durable: bool = True) -> None:
    """Give a file a new content.

    Args:
        path: of the file; its folder must be there.
        text: the whole content.
        private: only this user may read it; otherwise the umask says who may.
        durable: it is on disk when this returns, so that a crash of the machine leaves no empty file.

    Raises:
        OSError: it cannot be written; what was there is still there.
    """
    draft = path.with_name(f".{path.name[:40]}.{os.getpid()}-{threading.get_ident()}")
    try:
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600 if private else 0o666), "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):
            draft.unlink()
        raise
