# SPDX-License-Identifier: GPL-2.0-or-later
"""Files by their content, where all hosts reach them: a directory, ssh, S3, by fsspec.

A blob is named by the sha256 of its bytes. What is read is held against its name, so a store that lies is found out.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kdelta import digests, paths
from kdelta.errors import HostError

_CHUNK = 1 << 20


def address() -> str:
    """``$KDELTA_BLOBS`` (a URL that fsspec takes), else a directory of this machine, which serves its workers alone."""
    return os.environ.get("KDELTA_BLOBS") or str(paths.state_dir() / "blobs")


class Blobs:
    """The blobs at one address. Every method raises HostError where the place fails, with the remedy."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or address()
        self._open: Any = None
        with self._translated() as files:
            files.exists(self._root)

    def put(self, path: Path) -> str:
        """Keep a file; returns its name. One that is there already, in full length, is not sent again."""
        name = digests.of_file(path)
        target = self._path(name)
        with self._translated() as files:
            if files.exists(target) and files.size(target) == path.stat().st_size:
                return name
            files.makedirs(target.rpartition("/")[0], exist_ok=True)
            part = f"{target}.{secrets.token_hex(8)}.part"  # containers of several hosts have processes of one number
            files.put_file(str(path), part)
            if "file" in files.protocol:
                _share(Path(self._root), Path(part))
            files.mv(part, target)
        return name

    def has(self, name: str) -> bool:
        """Whether a blob is there."""
        with self._translated() as files:
            return bool(files.exists(self._path(name)))

    def get(self, name: str, target: Path) -> None:
        """Fetch a blob to ``target``, which appears whole or not at all; one that is damaged is fetched again, once."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            try:
                if self._copied(name, file) != name and self._copied(name, file) != name:
                    raise HostError(
                        f"blob {name[:12]} of {self.url} is damaged: remove {self._path(name)}, and ask again"
                    )
                os.replace(file.name, target)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise

    def _copied(self, name: str, file: IO[bytes]) -> str:
        """Write a blob to ``file``; returns the sha256 of what came."""
        digest = hashlib.sha256()
        file.seek(0)
        file.truncate()
        with self._translated() as files, files.open(self._path(name), "rb") as source:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                _write(file, chunk)
        _write(file, b"")
        return digest.hexdigest()

    def _connected(self) -> Any:
        if (found := self._open) is None:
            import fsspec

            found, root = fsspec.core.url_to_fs(self.url, skip_instance_cache=True)
            _refuse_unknown(found)
            self._open, self._root = found, str(root).rstrip("/")
        return found

    def _path(self, name: str) -> str:
        return f"{self._root}/{name[:2]}/{name}"

    @contextmanager
    def _translated(self) -> Iterator[Any]:
        try:
            yield self._connected()
        except HostError:
            raise
        except FileNotFoundError as error:
            raise HostError(
                f"a blob is not in {self.url} ({error}); set KDELTA_BLOBS on all hosts to one place that they share"
            ) from None
        except Exception as error:  # ssh's and S3's packages have errors of their own
            self._open = None  # a connection that was lost is made again by whoever is next
            said = " ".join(str(error).split())[:300] or type(error).__name__
            raise HostError(f"blobs at {self.url}: {said}; check KDELTA_BLOBS and its access") from error


def _share(root: Path, part: Path) -> None:
    """Open a file and its folder to all to whom the folder of all blobs is open, whatever the umask of who writes."""
    mode = stat.S_IMODE(root.stat().st_mode)
    for path, bits in ((part, mode & 0o666), (part.parent, mode)):
        with suppress(OSError):  # another user's folder is open already; some file systems have no modes
            path.chmod(bits)


def _write(file: IO[bytes], data: bytes) -> None:
    """Raises:
    HostError: the disk of this host is full, and not the place of the blobs.
    """
    try:
        file.write(data)
        if not data:
            file.flush()
    except OSError as error:
        raise HostError(f"{Path(file.name).parent}: {error.strerror}; free space or set KDELTA_CACHE") from None


def _refuse_unknown(files: Any) -> None:
    """fsspec's ssh takes any server for the right one; this looks into the files that ssh(1) looks into.

    Raises:
        HostError: the server is not known, or has another key.
    """
    client = getattr(files, "client", None)
    if "sftp" not in files.protocol or client is None:
        return
    import paramiko

    port = files.ssh_kwargs.get("port") or 22
    name = files.host if port == 22 else f"[{files.host}]:{port}"
    known, own = paramiko.HostKeys(), Path.home() / ".ssh" / "known_hosts"
    for place in (Path("/etc/ssh/ssh_known_hosts"), own):
        if place.is_file():
            known.load(str(place))
    keys, key = known.lookup(name), client.get_transport().get_remote_server_key()
    if keys is None or key.get_name() not in keys:
        raise HostError(
            f"blobs: {name} is not in {own} with its {key.get_name()} key: compare the key with its owner's, then "
            f"ssh-keyscan -p {port} {files.host} >> {own}"
        )
    if keys[key.get_name()] != key:
        raise HostError(
            f"blobs: {name} has another key than {own} says: another machine answers, or it was set up anew"
        )
