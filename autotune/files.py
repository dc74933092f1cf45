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
        durable: it is on disk when this returns: a crash of the machine leaves neither an empty file nor the old one.

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
        if durable:
            sync_folder(path.parent)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):
            draft.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk: those of files that were made, renamed or removed there."""
    # Some network file systems refuse that for folders, and write them at once.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
