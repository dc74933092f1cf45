"""Certificates for Ray's TLS: an authority of its own for each cluster, and a certificate for each of its nodes.

Ray then encrypts what its processes say to each other, and each end must have a certificate of that authority. The
token stays: it travels encrypted. `openssl` makes the certificates; they end with the folder that they are in.
"""

import os
import secrets
import shutil
import socket
import subprocess
from pathlib import Path

from autotune.errors import CannotRunHereError

# Longer than any batch system lets a job run.
_DAYS = "90"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_authority(folder: Path) -> None:
    """Make the authority of a cluster in a private folder.

    Raises:
        CannotRunHereError: `openssl` is not there, or cannot do it.
    """
    name = ("-subj", "/CN=autotune Ray cluster", "-days", _DAYS)
    _openssl(folder, "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.crt", *name)


def has_authority(folder: Path) -> bool:
    """Return whether the nodes that meet in a folder encrypt what they say."""
    return (folder / "ca.crt").exists()


def tls_settings(folder: Path, node: str) -> dict[str, str]:
    """Return the environment that makes Ray use the certificate of a node."""
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(folder / f"{node}.crt"),
        "RAY_TLS_SERVER_KEY": str(folder / f"{node}.key"),
        "RAY_TLS_CA_CERT": str(folder / "ca.crt"),
    }


def make_certificate(folder: Path, node: str, address: str) -> None:
    """Make the certificate of a node, which has that address, by the authority in the folder.

    Raises:
        CannotRunHereError: `openssl` is not there, or cannot do it.
    """
    _openssl(folder, "req", *_NEW_KEY, "-keyout", f"{node}.key", "-out", f"{node}.csr", "-subj", "/CN=node")
    names = f"subjectAltName=IP:{address},IP:127.0.0.1,DNS:localhost,DNS:{socket.gethostname()}\n"
    signing = ["-CA", "ca.crt", "-CAkey", "ca.key", "-set_serial", f"0x1{secrets.token_hex(8)}", "-days", _DAYS]
    asked = ["-in", f"{node}.csr", "-extfile", "/dev/stdin"]
    _openssl(folder, "x509", "-req", *asked, "-out", f"{node}.crt", *signing, given=names)


def _openssl(folder: Path, *arguments: str, given: str = "") -> None:
    program = shutil.which("openssl")
    if program is None:
        msg = "TLS between the nodes of a Ray cluster needs the program `openssl`, which is not on PATH here"
        raise CannotRunHereError(msg)
    # The user's own configuration of openssl is not asked: it may want other algorithms or answers.
    environment = {**os.environ, "OPENSSL_CONF": os.devnull}
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        umask=0o077,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        msg = f"openssl could not make a certificate in {folder}: {' '.join(done.stderr.split())[-300:]}"
        raise CannotRunHereError(msg)
