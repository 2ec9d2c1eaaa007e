"""Reads a box as docs/format.md describes it, checks it, and lists its files, with one JSON object per line.

    read_box.py BOX            checks all digests, and compares the image with the listing
    read_box.py --vector       prints the tree digest of the example in docs/format.md

It shares no code with boxbuild and has no library but Python's own (3.9 or later). So it shows that the page says
enough. It is slow: pure Python takes some seconds for the BLAKE3 of a MiB.
"""
import hashlib
import json
import os
import stat
import struct
import sys

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
# The indices of the words that each of the seven rounds mixes.
ORDER = [list(range(16))]
for _ in range(6):
    ORDER.append([ORDER[-1][i] for i in (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)])
PLACES = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
          (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def compress(chain, words, counter, length, flags):
    """Returns the next chaining value: the compression function of BLAKE3."""
    v = list(chain) + list(IV[:4]) + [counter & 0xFFFFFFFF, counter >> 32, length, flags]
    for order in ORDER:
        at = 0
        for a, b, c, d in PLACES:
            va = (v[a] + v[b] + words[order[at]]) & 0xFFFFFFFF
            x = v[d] ^ va
            vd = (x >> 16) | (x << 16) & 0xFFFFFFFF
            vc = (v[c] + vd) & 0xFFFFFFFF
            x = v[b] ^ vc
            vb = (x >> 12) | (x << 20) & 0xFFFFFFFF
            va = (va + vb + words[order[at + 1]]) & 0xFFFFFFFF
            x = vd ^ va
            vd = (x >> 8) | (x << 24) & 0xFFFFFFFF
            vc = (vc + vd) & 0xFFFFFFFF
            x = vb ^ vc
            v[a], v[b], v[c], v[d] = va, (x >> 7) | (x << 25) & 0xFFFFFFFF, vc, vd
            at += 2
    return [v[i] ^ v[i + 8] for i in range(8)]


def blake3(data):
    """Returns the BLAKE3 hash of bytes, as 32 bytes."""
    def chunk(number, is_root):
        part, chain = data[number * 1024:number * 1024 + 1024], IV
        for at in range(0, max(len(part), 1), 64):
            block = part[at:at + 64]
            flags = (CHUNK_START if at == 0 else 0) | (CHUNK_END | is_root if at + 64 >= len(part) else 0)
            words = struct.unpack("<16I", block.ljust(64, b"\0"))
            chain = compress(chain, words, number, len(block), flags)
        return chain

    def tree(start, end, is_root):
        if end - start == 1:
            return chunk(start, is_root)
        left = 1 << ((end - start - 1).bit_length() - 1)
        words = tree(start, start + left, 0) + tree(start + left, end, 0)
        return compress(IV, words, 0, 64, PARENT | is_root)

    return struct.pack("<8I", *tree(0, max(-(-len(data) // 1024), 1), ROOT))


def check(is_right, what):
    if not is_right:
        sys.exit("read_box.py: " + what)


def document(directory, name, limit):
    path = os.path.join(directory, name)
    check(stat.S_ISREG(os.lstat(path).st_mode), path + " is not a regular file")
    check(os.path.getsize(path) <= limit, path + " is too large")
    with open(path, "rb") as file:
        return file.read()


def blob(box, named, limit=1 << 48):
    """Returns the bytes of a blob. Checks them against the blob's descriptor."""
    algorithm, digest = named["digest"].split(":")
    check(algorithm == "sha256" and len(digest) == 64 and set(digest) <= set("0123456789abcdef"), "a digest is malformed")
    data = document(box, "blobs/sha256/" + digest, limit)
    check(len(data) == named["size"], digest + " has another size")
    check(hashlib.sha256(data).hexdigest() == digest, digest + " has another digest")
    return data


def manifest_of(box):
    layout = json.loads(document(box, "oci-layout", 1 << 20))
    check(layout["imageLayoutVersion"] == "1.0.0", "another version of the image layout")
    index = json.loads(document(box, "index.json", 1 << 20))
    found = [json.loads(blob(box, it, 1 << 20)) for it in index["manifests"]]
    found = [it for it in found if it.get("artifactType") == "application/vnd.boxbuild.box.v1"]
    check(len(found) == 1, "the directory has not one box")
    return found[0]


def rootfs_of(box, manifest):
    """Returns the image: the metadata followed by the segments."""
    role = "application/vnd.boxbuild.{}.v1".format
    kinds = [it["mediaType"] for it in manifest["layers"]]
    count = kinds.count(role("segment"))
    parts = manifest["layers"][:count + 1]
    check(kinds[:count + 1] == [role("metadata")] + count * [role("segment")], "the parts are not the first layers")
    check(kinds.count(role("metadata")) == 1 and count <= 254, "there are too many parts")
    check(len({it["digest"] for it in parts}) == len(parts), "a part is there twice")
    check(all(it["size"] > 0 and it["size"] % 4096 == 0 for it in parts), "a part has no whole blocks")
    check(parts[0]["size"] % (1 << 20) == 0, "the metadata have no whole MiB")
    image = b"".join(blob(box, it) for it in parts)
    check(struct.unpack_from("<I", image, 1060)[0] == len(image) // 4096, "the superblock has another size")
    return image


class Listing:
    """The entries of the listing, and the tree digest that is computed from them."""

    def __init__(self, data):
        magic = b"boxbuild listing 1\n"
        check(data.startswith(magic), "the listing is of another version")
        self.data, self.at, self.entries = data, len(magic), {}
        self.origins = json.loads(self.string())
        path, paths, digest = b"", [], [b"boxbuild tree 2"]
        for _ in range(self.number("I")):
            shared = self.number("I")
            check(shared <= len(path), "a path shares too much")
            path = path[:shared] + self.string()
            origin = self.number("B")
            number = self.number("I") if origin in (2, 3, 5, 7) else None
            start = self.at
            entry = self.inode()
            digest.append(struct.pack("<I", len(path)) + path + data[start:self.at])
            if "first" in entry:
                entry = self.entries[paths[entry["first"]]]
            else:
                entry["origin"] = (origin, number)
            paths.append(path)
            self.entries[path] = entry
        check(self.at == len(data), "the listing goes on")
        # Canonical order: by the list of each path's names, so that a directory comes before its entries.
        check(paths == sorted(paths, key=lambda it: it.split(b"/")) and len(set(paths)) == len(paths), "the listing is not in order")
        self.tree = blake3(b"".join(digest))

    def number(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def string(self):
        length = self.number("I")
        self.at += length
        check(self.at <= len(self.data), "the listing ends early")
        return self.data[self.at - length:self.at]

    def inode(self):
        tag = self.number("B")
        if tag == 0:
            return {"first": self.number("I")}
        entry = {"mode": self.number("H"), "uid": self.number("I"), "gid": self.number("I")}
        entry["mtime"] = (self.number("q"), self.number("I"))
        entry["xattrs"] = {self.string(): self.string() for _ in range(self.number("I"))}
        entry["type"] = {3: "directory", 4: "file", 5: "symlink", 6: "char-device", 7: "block-device", 8: "fifo"}[tag]
        if tag == 4:
            self.at += 32
            entry["blake3"], entry["size"] = self.data[self.at - 32:self.at], self.number("Q")
        elif tag == 5:
            entry["target"] = self.string()
        elif tag in (6, 7):
            entry["device"] = (self.number("I"), self.number("I"))
        return entry


TYPES = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "symlink", stat.S_IFCHR: "char-device",
         stat.S_IFBLK: "block-device", stat.S_IFIFO: "fifo"}
PREFIXES = {1: b"user.", 2: b"system.posix_acl_access", 3: b"system.posix_acl_default", 4: b"trusted.", 6: b"security."}


def xattrs(image, at, count):
    """Returns the extended attributes after an inode, and the offset of their end."""
    if count == 0:
        return {}, at
    end, found, at = at + 12 + 4 * (count - 1), {}, at + 12
    while at < end:
        length, prefix, size = struct.unpack_from("<BBH", image, at)
        name, value = image[at + 4:at + 4 + length], image[at + 4 + length:at + 4 + length + size]
        found[PREFIXES[prefix] + name] = value
        at += -(-(4 + length + size) // 4) * 4
    return found, end


def inode(image, nid):
    """Returns an inode of the image, and its data."""
    kind, icount, mode, _, size, union, _, uid, gid, mtime, nsec, _ = struct.unpack_from("<HHHHQIIIIqII", image, nid * 32)
    check(kind in (1, 5), "an inode is in another form")
    found, tail = xattrs(image, nid * 32 + 64, icount)
    entry = {"mode": mode & 0o7777, "uid": uid, "gid": gid, "mtime": (mtime, nsec), "xattrs": found}
    entry["type"] = TYPES[stat.S_IFMT(mode)]
    plain = size if kind == 1 else size // 4096 * 4096
    data = image[union * 4096:union * 4096 + plain] + image[tail:tail + size - plain]
    if entry["type"] == "file":
        check(len(data) == size, "a file goes beyond the image")
        entry["size"], entry["data"] = size, data
    elif entry["type"] == "symlink":
        entry["target"] = data
    elif entry["type"] in ("char-device", "block-device"):
        entry["device"] = ((union >> 8) & 0xFFF, (union & 0xFF) | ((union >> 12) & 0xFFF00))
    return entry, data


def names(data):
    """Yields each name in the blocks of a directory with its inode's number."""
    for start in range(0, len(data), 4096):
        block = data[start:start + 4096]
        count = struct.unpack_from("<H", block, 8)[0] // 12
        entries = [struct.unpack_from("<QHBB", block, 12 * at) for at in range(count)]
        ends = [it[1] for it in entries[1:]] + [len(block)]
        for (nid, start_of_name, _, _), end in zip(entries, ends):
            # The last name in a block ends at the first zero byte.
            yield block[start_of_name:end].split(b"\0")[0], nid


def walk(image):
    """Yields every path of the image with its inode's number, its entry and its data."""
    pending = [(b"/", struct.unpack_from("<H", image, 1024 + 14)[0])]
    while pending:
        path, nid = pending.pop()
        entry, data = inode(image, nid)
        yield path, nid, entry
        if entry["type"] == "directory":
            pending += [(path.rstrip(b"/") + b"/" + name, child) for name, child in names(data) if name not in (b".", b"..")]


def compare(image, listing):
    """Compares the image with the listing; returns the lines of the report."""
    lines, numbers, hashes = [], {}, {}
    for path, nid, found in walk(image):
        expected = listing.entries.get(path)
        check(expected is not None, "the listing lacks " + repr(path))
        data = found.pop("data", None)
        if data is not None and data not in hashes:
            hashes[data] = blake3(data)
        if data is not None:
            found["blake3"] = hashes[data]
        # Each inode of the image must be one entry of the listing, with all its hard links.
        check(numbers.setdefault(nid, id(expected)) == id(expected), repr(path) + " has another inode")
        for key in found:
            check(found[key] == expected[key], "{} has another {}".format(repr(path), key))
        line = {"path": path.decode("latin-1"), "type": found["type"], "mode": found["mode"], "uid": found["uid"],
                "gid": found["gid"], "size": found.get("size", 0)}
        if data is not None:
            line["sha256"] = hashlib.sha256(data).hexdigest()
        lines.append(line)
    check(len(lines) == len(listing.entries), "the image has fewer entries than the listing")
    check(len(set(numbers.values())) == len(numbers), "a file of several names has several inodes")
    return lines


def vector():
    """Returns the tree digest of the example in docs/format.md."""
    def attributes(tag, mode):
        return struct.pack("<BHIIqII", tag, mode, 0, 0, 0, 0, 0)

    directory, content = attributes(3, 0o755), b"root\n"
    file = attributes(4, 0o644) + blake3(content) + struct.pack("<Q", len(content))
    entries = [(b"/", directory), (b"/also", file), (b"/etc", directory), (b"/etc/passwd", struct.pack("<BI", 0, 1))]
    text = b"boxbuild tree 2" + b"".join(struct.pack("<I", len(path)) + path + it for path, it in entries)
    return "blake3:" + blake3(text).hex()


def main(argument):
    if argument == "--vector":
        return print(vector())
    manifest = manifest_of(argument)
    config = json.loads(blob(argument, manifest["config"], (1 << 20) + (64 << 10)))
    check(config["epoch"] == 4, "the box is of another epoch")
    for layer in manifest["layers"]:
        blob(argument, layer)
    listing = [it for it in manifest["layers"] if it["mediaType"] == "application/vnd.boxbuild.listing.v1"]
    check(len(listing) == 1, "there is not one listing")
    listing = Listing(blob(argument, listing[0], 256 << 20))
    check(config["tree"] == "blake3:" + listing.tree.hex(), "the listing has another tree digest")
    for line in sorted(compare(rootfs_of(argument, manifest), listing), key=lambda it: it["path"]):
        print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1])
