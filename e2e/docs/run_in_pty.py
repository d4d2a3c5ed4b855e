"""Runs a command on a terminal of its own: terminal.py KEYS COMMAND. Once it has drawn something it is given the
keys; what it showed is printed."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

keys, command = sys.argv[1].encode(), sys.argv[2]
child, terminal = pty.fork()
if child == 0:
    time.sleep(0.2)  # The size comes after the fork.
    os.execvp("bash", ["bash", "-c", command])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
shown, until = b"", time.monotonic() + 20
quiet = 0
while time.monotonic() < until:
    if select.select([terminal], [], [], 0.5)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break  # It has ended.
        if not part:
            break
        shown += part
        quiet = 0
    elif shown and keys:
        os.write(terminal, keys)
        keys = b""
    else:
        quiet += 1
_, status = os.waitpid(child, 0) if time.monotonic() < until else (0, 256)
sys.stdout.write(shown.decode(errors="replace").replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(status))
