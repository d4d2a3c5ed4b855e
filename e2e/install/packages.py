"""Installs each package into an empty folder or system, and uses it as a new user would."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from registry import Registry

from lib.report import Report
from lib.util import capture

DIST = Path(os.environ["DIST"])
BRIGADE = os.environ["BRIGADE"]
# The $PATH of a new user, without this checkout.
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def run(*command, env=None, **more):
    """Runs a program. The result has the additional attribute `output`: stdout and stderr together."""
    environ = {"PATH": PATH} | (env or {})
    done = capture([str(argument) for argument in command], env=environ, timeout=120, **more)
    done.output = done.stdout + done.stderr
    return done


def session(report, package, program, home, prefix=()):
    """Creates a team, a message and a task, as a new user would. Returns brigade's version information."""
    home.mkdir(parents=True, exist_ok=True)

    def brigade(*arguments):
        return run(*prefix, program, *arguments, env={"HOME": "/home" if prefix else str(home)})

    first = brigade("--version", "--json")
    version = json.loads(first.stdout) if first.stdout.startswith("{") else {}
    report.check(f"{package}: brigade prints its version", version.get("version") == VERSION, first.output)
    steps = [("team", "create", "demo"), ("team", "join", "bob"), ("send", "bob", "hello"),
             ("--as", "bob", "inbox", "--mark-read"), ("task", "add", "Write the parser"), ("task", "graph")]
    results = [brigade(*arguments) for arguments in steps]
    report.check(f"{package}: a team, a message and a task can be created", all(one.returncode == 0 for one in results)
                 and "hello" in results[3].stdout and "Write the parser" in results[5].stdout,
                 [one.output for one in results])
    return version


def empty_system(root):
    """Creates a root folder that contains only a home and three devices that every Linux system has."""
    for folder in ["home", "dev"]:
        (root / folder).mkdir(parents=True)
    for name, minor in [("null", 3), ("random", 8), ("urandom", 9)]:
        os.mknod(root / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    return root


def static(report, root):
    """Checks that the program is static, and runs on a system without any other file."""
    output = run("ldd", BRIGADE).output
    report.check("ldd reports a static program", "statically linked" in output or "not a dynamic" in output, output)
    empty = empty_system(root / "empty")
    shutil.copy(BRIGADE, empty / "brigade")
    version = session(report, "an empty system", "/brigade", empty / "home", prefix=("chroot", empty))
    report.check("brigade reports that it is a static program", version.get("static") is True, version)
    report.figure("size", f"{os.path.getsize(BRIGADE):,} bytes")

    # The C library resolves host names. Even a static program loads parts of that library at run time if the system
    # has them. brigade must also work without them.
    port = 42211
    server = subprocess.Popen([os.environ["NATS_SERVER"], "-a", "127.0.0.1", "-p", str(port), "--jetstream",
                               "--store_dir", str(root / "nats")], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        (empty / "etc").mkdir()
        (empty / "etc" / "hosts").write_text("127.0.0.1 localhost nats.test\n")
        for where, prefix, name in [("here", (), "localhost"), ("in an empty system", ("chroot", empty), "localhost"),
                                    ("in an empty system, through its hosts file", ("chroot", empty), "nats.test")]:
            program = "/brigade" if prefix else BRIGADE
            for _ in range(50):
                done = run(*prefix, program, "--store", f"nats://{name}:{port}", "team", "create",
                           f"t{len(where)}", env={"HOME": "/home" if prefix else str(root / "nats-home")})
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            report.check(f"brigade resolves nats://{name} {where}", done.returncode == 0, done.output)
    finally:
        server.terminate()
        server.wait()


def archive(report, root):
    """Unpacks the archive into a user's own prefix, and checks the program, completions and manual pages."""
    packed = next(DIST.glob("brigade-*.tar.gz"))
    prefix = root / "home" / ".local"
    prefix.mkdir(parents=True)
    done = run("tar", "-xzf", packed, "-C", prefix, "--strip-components=1")
    report.check("the archive unpacks", done.returncode == 0, done.output)
    session(report, "archive", prefix / "bin" / "brigade", root / "home")
    with tarfile.open(packed) as tar:
        owners = {(one.uid, one.gid, one.mode & 0o022) for one in tar}
    report.check("archive: files belong to root, and only root may write to them", owners == {(0, 0, 0)}, owners)

    share = prefix / "share"
    # The script asks the program, which must be on the path.
    script = f"""
        PATH={prefix / "bin"}:$PATH
        source {share}/bash-completion/completions/brigade
        COMP_WORDS=(brigade task cl) COMP_CWORD=2 COMP_LINE="brigade task cl" COMP_POINT=15
        _brigade brigade cl task && echo "${{COMPREPLY[@]}}"
    """
    done = run("bash", "--norc", "-euc", script)
    report.check("bash completes `brigade task cl`", done.stdout.split() == ["claim"], done.output)
    for page in ["brigade", "brigade-task-graph"]:
        text = (share / "man" / "man1" / f"{page}.1").read_text()
        report.check(f"there is a manual page {page}", f".TH {page} 1" in text, text[:200])


def deb(report, root):
    """Installs the Debian package into an empty system with dpkg, and removes it."""
    package = next(DIST.glob("*.deb"))
    system = empty_system(root / "system")
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"]:
        (system / folder).mkdir(parents=True)
    for file in ["status", "available"]:
        (system / "var/lib/dpkg" / file).touch()
    before = {path for path in system.rglob("*") if "dpkg" not in str(path)}
    dpkg = ("dpkg", f"--root={system}", "--force-script-chrootless", "--log=/dev/null")
    done = run(*dpkg, "--install", package)
    report.check("dpkg installs the package without dependencies", done.returncode == 0, done.output)
    session(report, "deb", "/usr/bin/brigade", system / "home", prefix=("chroot", system))
    listed = run(*dpkg, "--verify", "brigade")
    report.check("every installed file is unchanged", listed.stdout == "", listed.output)
    shutil.rmtree(system / "home")
    (system / "home").mkdir()
    done = run(*dpkg, "--purge", "brigade")
    left = {path for path in system.rglob("*") if "dpkg" not in str(path)} - before
    report.check("dpkg --purge leaves nothing", done.returncode == 0 and not left, left or done.output)


def npm(report, root):
    """Runs `npm install -g` with a registry that has only brigade's packages."""
    registry = Registry(DIST)
    prefix, home = root / "prefix", root / "home"
    home.mkdir()
    node = Path(shutil.which("node")).resolve().parent
    environ = {"HOME": str(home), "PATH": f"{prefix}/bin:{node}:{PATH}", "npm_config_registry": registry.url,
           "npm_config_prefix": str(prefix), "npm_config_update_notifier": "false",
           "npm_config_audit": "false", "npm_config_fetch_retries": "0"}
    done = run(shutil.which("npm"), "install", "-g", "brigade-teams", env=environ)
    report.check("npm install -g brigade-teams", done.returncode == 0, done.output)
    tarballs = sorted(name for name in registry.requested if name.endswith(".tgz"))
    report.check("npm fetches brigade-teams and the package for this platform", len(tarballs) == 2, tarballs)
    program = prefix / "bin" / "brigade"
    session(report, "npm", program, home)

    for arguments, code in [(("inbox", "bob", "--unread"), 4), (("no-such-command",), 2), (("send", "nobody", "x"), 1)]:
        done = run(program, *arguments, env={"HOME": str(home)})
        report.check(f"the npm command returns brigade's exit code {code}", done.returncode == code, done.output)
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

    def default_signals():
        """Restores default signal handling, because background processes of a script ignore some signals."""
        for number in signals:
            signal.signal(number, signal.SIG_DFL)

    for number in signals:
        ends = []
        for one in [program, BRIGADE]:
            running = subprocess.Popen([one, "log", "--follow"], env={"PATH": PATH, "HOME": str(home)},
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=default_signals)
            running.stdout.readline()
            executable = Path(os.readlink(f"/proc/{running.pid}/exe"))
            running.send_signal(number)
            ends.append((running.wait(timeout=20), executable))
        (code, executable), (direct_code, _) = ends
        report.check(f"{number.name} ends the npm command in the same way as brigade itself", code == direct_code, ends)
        report.check("the process of the npm command is brigade itself, without a wrapper",
                     executable.is_relative_to(prefix) and executable.parent.parent.name.startswith("brigade-teams-"),
                     executable)
    for one, how in [(program, "through npm's symbolic link"), (BRIGADE, "without npm")]:
        started = time.monotonic()
        for _ in range(20):
            run(one, "-V")
        report.figure(f"time to run brigade {how}", f"{(time.monotonic() - started) * 50:.1f} ms")

    package = prefix / "lib" / "node_modules" / "brigade-teams"
    for path in package.rglob("bin/brigade"):
        if path != package / "bin" / "brigade":
            path.unlink()
    done = run(program, "-V", env={"HOME": str(home)})
    report.check("without the package for this platform, the npm command reports what is missing",
                 done.returncode == 1 and "is not installed" in done.stderr, done.output)
    done = run(shutil.which("npm"), "uninstall", "-g", "brigade-teams", env=environ)
    left = [path for path in prefix.rglob("*") if path.is_file() or path.is_symlink()]
    report.check("npm uninstall leaves nothing", done.returncode == 0 and not left, left)

    tarballs = sorted(DIST.glob("*.tgz"))
    done = run(shutil.which("npm"), "install", "-g", *tarballs, env=environ)
    report.check("npm install -g installs from the two package files", done.returncode == 0, done.output)
    done = run(program, "-V")
    report.check("brigade runs after this installation", done.stdout.startswith(f"brigade {VERSION} ("), done.output)


def plugin(report, root):
    """Lets the real Claude Code validate and install the plugin, and connect to the plugin's MCP server."""
    home, tree = root / "home", root / "tree"
    home.mkdir()
    tree.mkdir()
    run("tar", "-xzf", next(DIST.glob("brigade-*.tar.gz")), "-C", tree, "--strip-components=1")
    environ = {"HOME": str(home), "PATH": f"{tree}/bin:{PATH}", "DISABLE_AUTOUPDATER": "1",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def claude(*arguments):
        return run(os.environ["CLAUDE"], *arguments, env=environ, cwd=home)

    share = tree / "share" / "brigade"
    for kind, path in [("plugin", share / "plugin"), ("marketplace", share)]:
        done = claude("plugin", "validate", "--strict", path)
        report.check(f"claude plugin validate --strict: the {kind}", done.returncode == 0, done.output)
    done = claude("plugin", "marketplace", "add", share)
    report.check("claude plugin marketplace add", done.returncode == 0, done.output)
    done = claude("plugin", "install", "brigade@brigade")
    report.check("claude plugin install brigade@brigade", done.returncode == 0, done.output)
    done = claude("mcp", "list")
    reached = [line for line in done.stdout.splitlines() if "brigade mcp" in line and "Connected" in line]
    report.check("Claude Code connects to the plugin's MCP server", len(reached) == 1, done.output)


def checksums(report, _root):
    """Checks that the checksums match, and that a second build produces the same packages."""
    done = run("sha256sum", "--check", "--quiet", "sha256sums.txt", cwd=DIST)
    report.check("the checksums match", done.returncode == 0, done.output)
    before, after = Path(os.environ["BEFORE"]).read_text(), (DIST / "sha256sums.txt").read_text()
    report.check("a second build with another umask, time zone and language produces identical packages",
                 before == after, before + after)


VERSION = run(BRIGADE, "-V").stdout.split()[1]
SCENARIOS = [checksums, static, archive, deb, npm, plugin]
report = Report(f"packages of brigade {VERSION}")
for scenario in SCENARIOS:
    if scenario.__name__ in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            started = time.monotonic()
            scenario(report, Path(folder).resolve())
            report.figure(scenario.__name__, f"{time.monotonic() - started:.1f} s")
sys.exit(report.end())
