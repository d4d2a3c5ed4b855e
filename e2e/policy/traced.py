"""Runs lines that rules allow in bash and dash under strace. Only the programs that the rules name may start, with the
arguments that the rules name, and no file may change.

The lines are random: commands that a rule allows, in random quotes and with random operators, then damaged at random.
`brigade-e2e-policy decide` keeps those that the rules allow."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generator import Generator

from lib.report import Report

# The rules, and for each program that they name whether its arguments are allowed.
RULES = ["a *", "git log *", "cargo test *", "cat src/*", "A=* c *", "echo *", "printf x *", "cd *", "b"]
PROGRAMS = {
    "a": lambda arguments: True,
    "b": lambda arguments: not arguments,
    "c": lambda arguments: True,
    "git": lambda arguments: arguments[:1] == ["log"],
    "cargo": lambda arguments: arguments[:1] == ["test"],
    "cat": lambda arguments: len(arguments) >= 1 and all(text.startswith("src/") for text in arguments),
    # A line can be the script of another shell. The programs that this shell starts are checked, too.
    "bash": lambda arguments: len(arguments) == 2 and arguments[0] == "-c",
}
# Programs that must never start. The work folder has executable files with some of these names, too.
FORBIDDEN = ["rm", "ls", "evil", "x", "sh", "env", "sudo", "eval", "time", "find", "xargs"]
SHELLS = {"bash": "/bin/bash", "dash": "/bin/dash"}
# How many lines run under one strace.
CHUNK = 2_000
# The name with which the driver starts a shell. No line can start a program under this name.
MARK = "traced-shell"
EXECVE = re.compile(r'execve\("((?:[^"\\]|\\.)*)", \[(.*?)\], 0x[0-9a-f]+')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def decode(text):
    """Decodes a string that strace printed with `-xx`."""
    return bytes.fromhex(text.replace("\\x", "")).decode(errors="replace")


class Env:
    """A folder of programs that do nothing, and a work folder with file names that tempt patterns."""

    def __init__(self, root):
        self.scratch, self.root = root, root / "env"
        self.bin, self.work = self.root / "bin", self.root / "work"
        self.bin.mkdir(parents=True)
        (self.work / "src").mkdir(parents=True)
        for name in [*PROGRAMS, *FORBIDDEN]:
            shutil.copy("/bin/bash" if name == "bash" else "/bin/true", self.bin / name)
        for name in ["evil", "a", "cargo", "bash", "src/evil", "-exec"]:
            shutil.copy("/bin/true", self.work / name)
        for name in ["src/x.rs", "src/a b.rs", "src/--config=x", "--config=x", "a b", "log", "a1", "a2", "x;evil"]:
            (self.work / name).write_text("evil\n")

    def files(self):
        return sorted((str(path.relative_to(self.root)), path.lstat().st_size) for path in self.root.rglob("*"))

    def allowed(self, lines):
        """Returns the lines that the rules allow."""
        text = "".join(line + "\0" for line in lines)
        done = subprocess.run([os.environ["POLICY"], "decide", str(self.work), *RULES], input=text.encode(),
                              stdout=subprocess.PIPE, check=True)
        return [line.decode() for line in done.stdout.split(b"\0")[:-1]]


def drive(shell, folder, path):
    """Runs each line of a file in a shell. This function runs under strace."""
    os.chdir(folder)
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, flags, 0)
               for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY))]
    for line in Path(path).read_bytes().split(b"\0")[:-1]:
        pid = os.posix_spawn(shell, [MARK, "-c", line], os.environ, file_actions=nothing)
        os.waitpid(pid, 0)


def run_traced(env, shell, lines):
    """Runs lines in a shell under strace. Returns the number of programs that started and a list of violations, each
    with the line that the shell ran at that time."""
    path, log = env.scratch / "lines", env.scratch / "strace.log"
    path.write_bytes(b"".join(line.encode() + b"\0" for line in lines))
    environ = {"PATH": str(env.bin), "LANG": "C.UTF-8", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [shutil.which("strace"), "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "100000", "-e", "trace=execve", "-e", "signal=none",
               "-o", str(log), sys.executable, __file__, "--drive", shell, str(env.work), str(path)]
    subprocess.run(command, env=environ, check=True)
    started, violations, line = 0, [], None
    with log.open(errors="replace") as entries:
        for number, entry in enumerate(entries):
            found = EXECVE.search(entry)
            if not found or number == 0:
                continue
            program = Path(decode(found[1]))
            arguments = [decode(text) for text in TEXT.findall(found[2])]
            if arguments[:1] == [MARK]:
                line = arguments[2]
                continue
            started += 1
            check = PROGRAMS.get(program.name) if program.parent == env.bin else None
            if check is None or not check(arguments[1:]):
                violations.append((line, str(program), arguments))
    return started, violations


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drive", nargs=3)
    options = parser.parse_args()
    if options.drive:
        drive(*options.drive)
        return 0
    report = Report(f"{options.lines} allowed lines in {' and '.join(SHELLS)}")
    with tempfile.TemporaryDirectory() as root:
        env = Env(Path(root).resolve())
        before = env.files()
        generator = Generator(random.Random(options.seed))
        lines, generated = {}, 0
        while len(lines) < options.lines:
            batch = [generator.line() for _ in range(10_000)]
            generated += len(batch)
            lines.update(dict.fromkeys(env.allowed(batch)))
        lines = list(lines)[: options.lines]
        report.figure("random lines", generated)
        report.figure("lines with several commands", sum(any(sign in line for sign in ";|&\n") for line in lines))
        report.figure("lines with quotes", sum(any(sign in line for sign in "'\"\\") for line in lines))
        started, violations = dict.fromkeys(SHELLS, 0), {name: [] for name in SHELLS}
        for at in range(0, len(lines), CHUNK):
            for name, shell in SHELLS.items():
                programs, found = run_traced(env, shell, lines[at : at + CHUNK])
                started[name] += programs
                violations[name] += found
            done = min(at + CHUNK, len(lines))
            print(f"      {done} lines: {started} programs, {sum(map(len, violations.values()))} violations", flush=True)
        for name in SHELLS:
            report.check(f"{name}: only allowed programs start", not violations[name], violations[name][:3])
            report.check(f"{name}: most lines start a program", started[name] > len(lines) / 4, started[name])
        report.check("no file changes", env.files() == before, set(env.files()) ^ set(before))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
