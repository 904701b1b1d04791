#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nobody may read a new file who could not read the file that it replaces.

    tests/modes.py TENFOLD

Every command that replaces a file keeps the mode bits 0777 of the old file; when root runs it, also its
owner and group. Set-user-ID, set-group-ID and sticky bits, and extended attributes, are not kept. If the
group cannot be kept, the new group has only the permissions that everybody has. The mode of a new file
depends on umask. Only root can give files to other users; without root, those tests are left out."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from writing import DONE_TOO, Inputs, Place, tasks

MODES = [0o600, 0o640, 0o664, 0o444, 0o755, 0o606, 0o4755, 0o2775, 0o1777, 0o6777]
ANEW = ["meta-rewrite", "points-compact"]  # these replace the file that they change
NOBODY, OWNER, GROUP = 65534, 12345, 23456
wrong, checks = [], 0


def check(ok, *words):
    global checks
    checks += 1
    if not ok:
        wrong.append(" ".join(map(str, words)))


class Replaced(Place):
    """A place in which a file is replaced."""

    def __init__(self, storm, task, where):
        super().__init__(storm, task, where, replace=task.force, sync=False)

    def targets(self):
        """The existing files that will be replaced."""
        if self.task.how == "split":
            return sorted(p for p in (self.dir / "to").iterdir() if p.name.startswith("model"))
        return [self.dir / (self.task.out or self.task.changes)]

    def run(self, user=None, umask=-1):
        stdin = open(self.dir / self.task.stdin, "rb") if self.task.stdin else subprocess.DEVNULL
        binary = self.storm.binary
        more = {} if user is None else {"user": user, "group": user, "extra_groups": [], "executable": f"/proc/self/fd/{binary}"}
        done = subprocess.run(self.args(), cwd=self.dir, stdin=stdin, capture_output=True, check=False, umask=umask,
                              pass_fds=[binary], **more)
        ok = done.returncode in (0, DONE_TOO.get(self.task.how))
        check(ok, self.task.name, "exit code", done.returncode, done.stderr.decode())
        return ok

    def replaced(self, before, user=None):
        """Runs the command; returns each file with its state before and after. Files that were
        changed in place are left out."""
        if not self.run(user):
            return []
        after = {p: p.stat() for p in before if p.exists()}
        return [(p, before[p], after[p]) for p in after if after[p].st_ino != before[p].st_ino]


def keeps_mode(place, mode):
    place.prepare()
    for path in place.targets():
        path.chmod(mode)
    before = {p: p.stat() for p in place.targets()}
    found = place.replaced(before)
    for path, _, now in found:
        check(now.st_mode & 0o7777 == mode & 0o777, f"{place.task.name}: {path.name} had mode {mode:o}, has {now.st_mode & 0o7777:o}")
    check(found, place.task.name, "replaces nothing")


def keeps_owner(place, mode):
    place.prepare()
    for path in place.targets():
        os.chown(path, OWNER, GROUP)
        path.chmod(mode)
    for path, _, now in place.replaced({p: p.stat() for p in place.targets()}):
        owner = now.st_uid, now.st_gid, now.st_mode & 0o7777
        check(owner == (OWNER, GROUP, mode & 0o777), f"{place.task.name}: {path.name} is {owner[0]}:{owner[1]} {owner[2]:o}")


def shrinks(place, mode):
    """Run by a user who is not in the file's group."""
    place.prepare()
    (place.dir / "to").chmod(0o777)
    for path in place.targets():
        os.chown(path, NOBODY, GROUP)
        path.chmod(mode)
    wanted = mode & 0o707 | (mode & 0o007) << 3 & mode
    for path, _, now in place.replaced({p: p.stat() for p in place.targets()}, user=NOBODY):
        check(now.st_gid != GROUP and now.st_mode & 0o7777 == wanted,
              f"{place.task.name}: {path.name}, {mode:o}, of a group that cannot be kept: {now.st_mode & 0o7777:o} instead of {wanted:o}")


def drops_attributes(place):
    place.prepare()
    try:
        for path in place.targets():
            os.setxattr(path, "user.tenfold", b"x")
    except OSError:
        return  # the file system has none
    for path, _, _ in place.replaced({p: p.stat() for p in place.targets()}):
        check("user.tenfold" not in os.listxattr(path), f"{place.task.name}: {path.name} has the old one's attributes")


def makes_new(storm, task, where):
    """There was no file before."""
    place = Place(storm, task, where, sync=False)
    place.prepare()
    place.__class__ = Replaced
    if place.run(umask=0o027):
        for path in place.targets() if task.how != "split" else (p for p in (place.dir / task.out).iterdir() if p.name.startswith("model")):
            mode = path.stat().st_mode & 0o7777
            check(mode == 0o640, f"{task.name}: {path.name} is new and has mode {mode:o}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    random.seed(1)
    with tempfile.TemporaryDirectory() as scratch:
        storm, where = Inputs(sys.argv[1], scratch, side=32), pathlib.Path(scratch) / "place"
        os.chmod(scratch, 0o755)
        where.mkdir()
        for task in tasks(storm):
            if task.out and task.name not in ("split-beside", "split-replace"):
                makes_new(storm, task, where)
            if not task.force and task.name not in ANEW and task.name != "split-replace":
                continue
            place = Replaced(storm, task, where)
            for mode in MODES:
                writable = mode & 0o200 or task.force
                if writable or os.geteuid() == 0:
                    keeps_mode(place, mode)
                if os.geteuid() == 0:
                    keeps_owner(place, mode)
                if os.geteuid() == 0 and writable:
                    shrinks(place, mode)
            drops_attributes(place)
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{checks} checks, {len(wrong)} wrong" + ("" if os.geteuid() == 0 else "; without root, nothing of owners"))
    sys.exit(1 if wrong or not checks else 0)


if __name__ == "__main__":
    main()
