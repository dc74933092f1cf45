"""Files and folders that change whole: a reader finds the old content or the new one, never a part."""

import os
import secrets
import shutil
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


_DISCARDED = ".discarded"


def discard(folder: Path) -> None:
    """Remove a folder: in one moment nothing is there any more under its name.

    What then stays of it under another name, `sweep_discarded` removes.

    Raises:
        OSError: it stays as it is.
    """
    # A host that was cut off may still write there: it goes on in a folder of another name.
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_DISCARDED}")
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def sweep_discarded(*around: Path) -> None:
    """Remove what is left of folders that were discarded there, by a process that was killed or could not go on."""
    for folder in around:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                is_ours = entry.name.startswith(".") and entry.name.endswith(_DISCARDED)
                if is_ours and entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
