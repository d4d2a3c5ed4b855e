//! Build tools, compilers, linters and document converters.

use super::{Danger, NONE};

pub(super) const TABLE: &[Danger] = &[
    Danger {
        programs: &["go"],
        long: &[
            "-C",
            "-asmflags",
            "-exec",
            "-gccgoflags",
            "-gcflags",
            "-ldflags",
            "-modfile",
            "-overlay",
            "-pkgdir",
            "-toolexec",
            "-vettool",
        ],
        words: &["-w"],
        ..NONE
    },
    Danger {
        programs: &["cargo"],
        short: "CZ",
        long: &[
            "--config",
            "--manifest-path",
            "--target-dir",
            "--artifact-dir",
            "--out-dir",
            "--lockfile-path",
        ],
        starts: &["+"],
        ..NONE
    },
    Danger {
        programs: &["npm", "pnpm", "yarn", "bun", "npx"],
        short: "C",
        long: &[
            "--call",
            "--cwd",
            "--dir",
            "--editor",
            "--git",
            "--globalconfig",
            "--node-options",
            "--prefix",
            "--script-shell",
            "--shell",
            "--userconfig",
            "--use-yarnrc",
            "--viewer",
        ],
        words: &["config", "dlx", "edit", "exec", "explore", "plugin", "set", "set-script", "x"],
        any_dashes: true,
        ..NONE
    },
    Danger {
        programs: &["make", "gmake", "just", "ninja"],
        short: "CEIdf",
        long: &[
            "--directory",
            "--eval",
            "--file",
            "--include-dir",
            "--justfile",
            "--makefile",
            "--shell",
            "--shell-arg",
            "--working-directory",
            "--chooser",
        ],
        texts: &["="],
        ..NONE
    },
    Danger { programs: &["cmake"], short: "CEP", ..NONE },
    Danger { programs: &["ctest"], short: "S", long: &["--script", "--build-and-test"], ..NONE },
    Danger {
        programs: &["gradle", "gradlew"],
        short: "Ibpcg",
        long: &[
            "--init-script",
            "--build-file",
            "--project-dir",
            "--settings-file",
            "--gradle-user-home",
        ],
        ..NONE
    },
    Danger {
        programs: &["mvn"],
        short: "fs",
        long: &["--file", "--settings", "--global-settings"],
        ..NONE
    },
    Danger { programs: &["pytest"], short: "pc", long: &["--rootdir", "--override-ini"], ..NONE },
    Danger {
        programs: &["cc", "gcc", "g++", "c++", "clang", "clang++"],
        long: &[
            "--config",
            "--gcc-install-dir",
            "--gcc-toolchain",
            "--ld-path",
            "--prefix",
            "--specs",
        ],
        starts: &[
            "-B",
            "-Wa,",
            "-Wl,",
            "-Wp,",
            "-X",
            "-fpass-plugin",
            "-fplugin",
            "-fuse-ld",
            "-gcc-toolchain",
            "-mllvm",
            "-specs",
            "-wrapper",
            "@",
        ],
        ..NONE
    },
    Danger {
        programs: &[
            "addr2line",
            "ar",
            "gcc-ar",
            "gcc-nm",
            "gcc-ranlib",
            "gold",
            "ld",
            "ld.bfd",
            "ld.gold",
            "ld.lld",
            "lld",
            "nm",
            "objcopy",
            "objdump",
            "ranlib",
            "size",
            "strip",
        ],
        long: &["-plugin", "--plugin", "-load-pass-plugin", "-mllvm"],
        starts: &["@"],
        ..NONE
    },
    Danger {
        programs: &["rustc", "rustdoc"],
        short: "CLZ",
        long: &[
            "--codegen",
            "--extern",
            "--sysroot",
            "--test-builder",
            "--test-runtool",
            "--theme",
        ],
        starts: &["@"],
        ..NONE
    },
    Danger { programs: &["install", "ginstall"], long: &["--strip-program"], ..NONE },
    Danger {
        programs: &["mypy"],
        long: &["--config-file", "--python-executable", "--custom-typeshed-dir"],
        ..NONE
    },
    Danger {
        programs: &["pylint"],
        long: &["--init-hook", "--load-plugins", "--output", "--rcfile"],
        ..NONE
    },
    Danger {
        programs: &["eslint"],
        short: "cfo",
        long: &[
            "--config",
            "--format",
            "--output-file",
            "--parser",
            "--plugin",
            "--resolve-plugins-relative-to",
            "--rulesdir",
        ],
        ..NONE
    },
    Danger {
        programs: &["pandoc"],
        short: "FLdo",
        long: &[
            "--data-dir",
            "--defaults",
            "--extract-media",
            "--filter",
            "--log",
            "--lua-filter",
            "--output",
            "--pdf-engine",
            "--pdf-engine-opt",
        ],
        // A custom reader or writer.
        texts: &[".lua"],
        ..NONE
    },
    Danger {
        programs: &["latex", "lualatex", "pdflatex", "pdftex", "tex", "xelatex"],
        long: &["-shell-escape", "-enable-write18", "-output-directory"],
        ..NONE
    },
];
