"""Each package, installed into an empty place and used as a new user would."""

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
from report import Report

DIST = Path(os.environ["DIST"])
BRIGADE = os.environ["BRIGADE"]
# What a new user has, and none of this checkout.
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def run(*command, env=None, **more):
    """What a program printed, both ways, and how it ended."""
    env = {"PATH": PATH} | (env or {})
    done = subprocess.run([str(word) for word in command], env=env, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, **more)
    done.said = done.stdout + done.stderr
    return done


def session(report, how, program, home, before=()):
    """A new user's first minute: a team, a message, a task."""
    home.mkdir(parents=True, exist_ok=True)

    def brigade(*words):
        return run(*before, program, *words, env={"HOME": "/home" if before else str(home)})

    first = brigade("--version", "--json")
    told = json.loads(first.stdout) if first.stdout.startswith("{") else {}
    report.check(f"{how}: says its version", told.get("version") == VERSION, first.said)
    steps = [("team", "create", "demo"), ("team", "join", "bob"), ("send", "bob", "hello"),
             ("--as", "bob", "inbox", "--mark-read"), ("task", "add", "Write the parser"), ("task", "graph")]
    said = [brigade(*words) for words in steps]
    report.check(f"{how}: a team, a message, a task", all(one.returncode == 0 for one in said)
                 and "hello" in said[3].stdout and "Write the parser" in said[5].stdout,
                 [one.said for one in said])
    return told


def bare(root):
    """A system of nothing but a home and three devices that every Linux has."""
    for folder in ["home", "dev"]:
        (root / folder).mkdir(parents=True)
    for name, minor in [("null", 3), ("random", 8), ("urandom", 9)]:
        os.mknod(root / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    return root


def static(report, root):
    """The program needs nothing of the system it is on."""
    told = run("ldd", BRIGADE).said
    report.check("ldd finds nothing to load", "statically linked" in told or "not a dynamic" in told, told)
    empty = bare(root / "empty")
    shutil.copy(BRIGADE, empty / "brigade")
    told = session(report, "a folder with three devices as the whole system", "/brigade", empty / "home",
                   before=("chroot", empty))
    report.check("it says that it is static", told.get("static") is True, told)
    report.figure("size", f"{os.path.getsize(BRIGADE):,} bytes")

    # Names of hosts are looked up by the C library, which has parts that a static program loads if they are
    # there. Both ways must do.
    port = 42211
    engine = subprocess.Popen([os.environ["ENGINE"], "-a", "127.0.0.1", "-p", str(port), "--jetstream",
                               "--store_dir", str(root / "engine")], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        (empty / "etc").mkdir()
        (empty / "etc" / "hosts").write_text("127.0.0.1 localhost engine.test\n")
        for where, before, name in [("here", (), "localhost"), ("in an empty system", ("chroot", empty), "localhost"),
                                    ("in an empty system, by its own hosts file", ("chroot", empty), "engine.test")]:
            program = "/brigade" if before else BRIGADE
            for _ in range(50):
                done = run(*before, program, "--store", f"nats://{name}:{port}", "team", "create",
                           f"t{len(where)}", env={"HOME": "/home" if before else str(root / "nats-home")})
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            report.check(f"nats://{name} is found {where}", done.returncode == 0, done.said)
    finally:
        engine.terminate()
        engine.wait()


def archive(report, root):
    """Unpacked into a prefix of one's own, with completions and manual pages."""
    packed = next(DIST.glob("brigade-*.tar.gz"))
    prefix = root / "home" / ".local"
    prefix.mkdir(parents=True)
    done = run("tar", "-xzf", packed, "-C", prefix, "--strip-components=1")
    report.check("the archive unpacks", done.returncode == 0, done.said)
    session(report, "archive", prefix / "bin" / "brigade", root / "home")
    with tarfile.open(packed) as tar:
        owners = {(one.uid, one.gid, one.mode & 0o022) for one in tar}
    report.check("it is root's, and nobody else may write", owners == {(0, 0, 0)}, owners)

    share = prefix / "share"
    script = f"""
        source {share}/bash-completion/completions/brigade
        COMP_WORDS=(brigade task cl) COMP_CWORD=2 COMP_LINE="brigade task cl" COMP_POINT=15
        _brigade brigade cl task && echo "${{COMPREPLY[@]}}"
    """
    done = run("bash", "--norc", "-euc", script)
    report.check("bash completes `brigade task cl`", done.stdout.split() == ["claim"], done.said)
    for page in ["brigade", "brigade-task-graph"]:
        text = (share / "man" / "man1" / f"{page}.1").read_text()
        report.check(f"there is a manual page {page}", f".TH {page} 1" in text, text[:200])


def deb(report, root):
    """Installed by dpkg into a root of its own, and removed."""
    package = next(DIST.glob("*.deb"))
    system = bare(root / "system")
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"]:
        (system / folder).mkdir(parents=True)
    for file in ["status", "available"]:
        (system / "var/lib/dpkg" / file).touch()
    before = {path for path in system.rglob("*") if "dpkg" not in str(path)}
    dpkg = ("dpkg", f"--root={system}", "--force-script-chrootless", "--log=/dev/null")
    done = run(*dpkg, "--install", package)
    report.check("dpkg installs it, and it depends on nothing", done.returncode == 0, done.said)
    session(report, "deb", "/usr/bin/brigade", system / "home", before=("chroot", system))
    listed = run(*dpkg, "--verify", "brigade")
    report.check("every file is as it was packed", listed.stdout == "", listed.said)
    shutil.rmtree(system / "home")
    (system / "home").mkdir()
    done = run(*dpkg, "--purge", "brigade")
    left = {path for path in system.rglob("*") if "dpkg" not in str(path)} - before
    report.check("removed, it leaves nothing", done.returncode == 0 and not left, left or done.said)


def npm(report, root):
    """By `npm install -g`, from a registry that has these packages alone."""
    registry = Registry(DIST)
    prefix, home = root / "prefix", root / "home"
    home.mkdir()
    node = Path(shutil.which("node")).resolve().parent
    env = {"HOME": str(home), "PATH": f"{prefix}/bin:{node}:{PATH}", "npm_config_registry": registry.url,
           "npm_config_prefix": str(prefix), "npm_config_update_notifier": "false",
           "npm_config_audit": "false", "npm_config_fetch_retries": "0"}
    done = run(shutil.which("npm"), "install", "-g", "brigade-teams", env=env)
    report.check("npm install -g brigade-teams", done.returncode == 0, done.said)
    tarballs = sorted(name for name in registry.asked if name.endswith(".tgz"))
    report.check("it fetches the package and that of this platform", len(tarballs) == 2, tarballs)
    program = prefix / "bin" / "brigade"
    session(report, "npm", program, home)

    for words, code in [(("inbox", "bob", "--unread"), 4), (("no-such-command",), 2), (("send", "nobody", "x"), 1)]:
        done = run(program, *words, env={"HOME": str(home)})
        report.check(f"the exit code {code} is passed on", done.returncode == code, done.said)
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

    def heeding():
        """What is started in the background of a script would ignore some."""
        for number in signals:
            signal.signal(number, signal.SIG_DFL)

    for number in signals:
        ends = []
        for one in [program, BRIGADE]:
            running = subprocess.Popen([one, "log", "--follow"], env={"PATH": PATH, "HOME": str(home)},
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=heeding)
            running.stdout.readline()
            runs = Path(os.readlink(f"/proc/{running.pid}/exe"))
            running.send_signal(number)
            ends.append((running.wait(timeout=20), runs))
        (code, runs), (bare, _) = ends
        report.check(f"{number.name} ends it as it ends the program itself", code == bare, ends)
        report.check("what runs is the program, and nothing beside it",
                     runs.is_relative_to(prefix) and runs.parent.parent.name.startswith("brigade-teams-"), runs)
    for one, how in [(program, "through npm's link"), (BRIGADE, "of the program itself")]:
        begun = time.monotonic()
        for _ in range(20):
            run(one, "-V")
        report.figure(f"a call {how}", f"{(time.monotonic() - begun) * 50:.1f} ms")

    inside = prefix / "lib" / "node_modules" / "brigade-teams"
    for path in inside.rglob("bin/brigade"):
        if path != inside / "bin" / "brigade":
            path.unlink()
    done = run(program, "-V", env={"HOME": str(home)})
    report.check("without the package of this platform it says what is missing",
                 done.returncode == 1 and "is not installed" in done.stderr, done.said)
    done = run(shutil.which("npm"), "uninstall", "-g", "brigade-teams", env=env)
    left = [path for path in prefix.rglob("*") if path.is_file() or path.is_symlink()]
    report.check("npm uninstall leaves nothing", done.returncode == 0 and not left, left)

    tarballs = sorted(DIST.glob("*.tgz"))
    done = run(shutil.which("npm"), "install", "-g", *tarballs, env=env)
    report.check("npm install -g of the two files", done.returncode == 0, done.said)
    done = run(program, "-V")
    report.check("and it runs", done.stdout.startswith(f"brigade {VERSION} ("), done.said)


def plugin(report, root):
    """The plugin, by the real Claude Code: checked, installed, and its server reached."""
    home, tree = root / "home", root / "tree"
    home.mkdir()
    tree.mkdir()
    run("tar", "-xzf", next(DIST.glob("brigade-*.tar.gz")), "-C", tree, "--strip-components=1")
    env = {"HOME": str(home), "PATH": f"{tree}/bin:{PATH}", "DISABLE_AUTOUPDATER": "1",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def claude(*words):
        return run(os.environ["CLAUDE"], *words, env=env, cwd=home)

    share = tree / "share" / "brigade"
    for what, path in [("plugin", share / "plugin"), ("marketplace", share)]:
        done = claude("plugin", "validate", "--strict", path)
        report.check(f"claude plugin validate --strict: the {what}", done.returncode == 0, done.said)
    done = claude("plugin", "marketplace", "add", share)
    report.check("claude plugin marketplace add", done.returncode == 0, done.said)
    done = claude("plugin", "install", "brigade@brigade")
    report.check("claude plugin install brigade@brigade", done.returncode == 0, done.said)
    done = claude("mcp", "list")
    reached = [line for line in done.stdout.splitlines() if "brigade mcp" in line and "Connected" in line]
    report.check("its server is reached", len(reached) == 1, done.said)


def checksums(report, _root):
    """What was made is what the checksums say, and was made twice."""
    done = run("sha256sum", "--check", "--quiet", "sha256sums.txt", cwd=DIST)
    report.check("the checksums hold", done.returncode == 0, done.said)
    before, after = Path(os.environ["BEFORE"]).read_text(), (DIST / "sha256sums.txt").read_text()
    report.check("made again, with other settings of the user's, every package has the same bytes",
                 before == after, before + after)


VERSION = run(BRIGADE, "-V").stdout.split()[1]
SCENARIOS = [checksums, static, archive, deb, npm, plugin]
report = Report(f"brigade {VERSION}, installed in every way")
for scenario in SCENARIOS:
    if not sys.argv[1:] or scenario.__name__ in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            begun = time.monotonic()
            scenario(report, Path(folder).resolve())
            report.figure(scenario.__name__, f"{time.monotonic() - begun:.1f} s")
report.end()
sys.exit(report.failures > 0)
