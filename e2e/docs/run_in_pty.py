"""Runs a command in a pseudo-terminal: run_in_pty.py KEYS COMMAND. Presses the keys as soon as the command has printed
something, and prints the command's output."""

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
    time.sleep(0.2)  # Wait until the parent has set the terminal size.
    os.execvp("bash", ["bash", "-c", command])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
output, until = b"", time.monotonic() + 20
while time.monotonic() < until:
    if select.select([terminal], [], [], 0.5)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break  # The command has exited.
        if not part:
            break
        output += part
    elif output and keys:
        os.write(terminal, keys)
        keys = b""
_, status = os.waitpid(child, 0) if time.monotonic() < until else (0, 256)
sys.stdout.write(output.decode(errors="replace").replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(status))
