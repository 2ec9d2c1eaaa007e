"""Lists tar archives with Python's tarfile, and prints a line of JSON for each archive.

Standard input: for each archive its length (8 bytes, little-endian) and its bytes.
"""
import io
import json
import sys
import tarfile

KINDS = {
    tarfile.LNKTYPE: "h",
    tarfile.SYMTYPE: "l",
    tarfile.CHRTYPE: "c",
    tarfile.BLKTYPE: "b",
    tarfile.DIRTYPE: "d",
    tarfile.FIFOTYPE: "p",
}


class Strict(tarfile.TarInfo):
    """Raises an error for an invalid header, which the library treats as the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive):
        try:
            return super().fromtarfile(archive)
        except tarfile.InvalidHeaderError as error:
            raise ValueError("a header does not read") from error


def raw(text):
    return list(text.encode("utf-8", "surrogateescape"))


def listing(data):
    found = []
    archive = tarfile.TarFile(
        fileobj=io.BytesIO(data), tarinfo=Strict, encoding="utf-8", errors="surrogateescape"
    )
    for member in archive:
        kind = KINDS.get(member.type, "f")
        entry = {"kind": kind, "path": raw(member.name), "target": raw(member.linkname)}
        entry["device"] = [member.devmajor, member.devminor]
        entry["content"] = []
        if kind == "f":
            content = archive.extractfile(member).read()
            if len(content) != member.size:
                raise tarfile.ReadError("the data ends early")
            entry["content"] = list(content)
        found.append(entry)
    return found


while head := sys.stdin.buffer.read(8):
    data = sys.stdin.buffer.read(int.from_bytes(head, "little"))
    try:
        print(json.dumps(listing(data)))
    except Exception as error:  # Whatever it is, it has not accepted the archive.
        print(json.dumps(str(error)))
