# SPDX-License-Identifier: MIT
"""The command: the C program that lies in the package, or else on the path."""
import os
import shutil
import sys


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tenfold")
    command = here if os.access(here, os.X_OK) else None
    if command is None:
        own = os.path.realpath(sys.argv[0])
        for folder in os.get_exec_path():
            found = shutil.which("tenfold", path=folder)
            if found and os.path.realpath(found) != own:
                command = found
                break
    if command is None:
        sys.exit("tenfold: this installation of the package has no command")
    os.execv(command, ["tenfold", *sys.argv[1:]])


if __name__ == "__main__":
    main()
