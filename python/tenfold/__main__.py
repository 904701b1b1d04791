# SPDX-License-Identifier: MIT
"""The command: runs the C program in the package, or else the one in PATH."""
import os
import shutil
import sys


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tenfold")
    command = here if os.access(here, os.X_OK) else None
    if command is None:
        own = os.path.realpath(sys.argv[0])
        for directory in os.get_exec_path():
            found = shutil.which("tenfold", path=directory)
            if found and os.path.realpath(found) != own:
                command = found
                break
    if command is None:
        sys.exit("tenfold: the package was installed without its command, and PATH does not have it")
    os.execv(command, ["tenfold", *sys.argv[1:]])


if __name__ == "__main__":
    main()
