"""Random command lines, most of which resemble lines that the rules of `traced.py` allow."""

COMMANDS = [
    ["a"], ["a", "x"], ["a", "-n", "x y"], ["b"], ["git", "log"], ["git", "log", "-3"], ["git", "log", "a..b"],
    ["cargo", "test"], ["cargo", "test", "-p", "x"], ["cat", "src/x.rs"], ["cat", "src/a b.rs"], ["echo", "x"],
    ["echo", "$(evil)"], ["echo", "`evil`"], ["echo", ";evil"], ["echo", "a'b"], ["printf", "x", "\\n"], ["cd", "src"],
    ["a", "*"], ["a", "{evil,x}"], ["a", "~"], ["a", ""], ["echo", "| evil"], ["a", "é"], ["a", ">", "evil"],
]
OPERATORS = ["; ", ";", " && ", "&&", " || ", "||", " | ", "|", " |& ", " & ", "&", "\n", "\n\n", " ;\n", " &&\n"]
REDIRECTIONS = [
    " 2>&1", " >/dev/null", " 2>/dev/null", " < src/x.rs", " <src/x.rs", " >&2", " 2>&-", " </dev/null", " 0<src/x.rs",
    " > x", " >> x", " &>/dev/null", " >|x", " <>x", " 3<&0",
]
PATTERNS = [" src/*.rs", " src/*", " src/?.rs", " src/[ax].rs", " a?", " a*", " *", " -*", " ./*"]
# Pieces that change the meaning of a line, if the grammar and the shell read it differently.
PIECES = [
    "'", '"', "\\", "`", "$", "$(", ")", "(", "{", "}", "!", "#", " #", "~", "=", "<", ">", "&", "|", ";", " ", "\t", "\n",
    "*", "?", "[", "]", "evil", " evil ", ";evil;", "$(evil)", "`evil`", "\nevil\n", "&evil&", "|evil|", "./", "../",
    "bash -c ", "bash -c 'evil'", "eval ", "env ", "time ", "A=1 ", "PATH=. ", "A=$(evil) ", "$'", "${", "<<x\n", "<<<",
    "<(evil)", ">(evil)", "\\\n", "&>", "2>", "10>", ">|", "\r", "\u00a0", "\u200b", "if ", "then ", "cd .. ", "-exec ",
    "--config=x", "^", "%1", "''", '""', "\\'", '\\"', "0", "1", "-", ",", ":", "é", "\\\\", "!!", "\x0b", "\x01",
]


class Generator:
    def __init__(self, rng):
        self.rng = rng

    def line(self):
        rng = self.rng
        line = self.command()
        while rng.random() < 0.4:
            line += rng.choice(OPERATORS) + self.command()
        if rng.random() < 0.1:
            line = rng.choice(["! ", " ", "\n", "\t"]) + line
        if rng.random() < 0.1:
            line += rng.choice([";", " &", "\n", " "])
        if rng.random() < 0.6:
            for _ in range(rng.randint(1, 3)):
                line = self.damaged(line)
        # A NUL separates lines.
        return line.replace("\0", "")

    def command(self):
        rng = self.rng
        words = " ".join(self.quoted(word) for word in rng.choice(COMMANDS))
        if rng.random() < 0.1:
            words = "A=" + self.quoted(rng.choice(["1", "x y", ""])) + " c " + words
        if rng.random() < 0.2:
            words += rng.choice(PATTERNS)
        while rng.random() < 0.2:
            words += rng.choice(REDIRECTIONS)
        return words

    def quoted(self, word):
        """Quotes a word in a random way; sometimes not at all."""
        rng = self.rng
        style = rng.randrange(6)
        if style == 0:
            return "'" + word.replace("'", "'\\''") + "'"
        if style == 1:
            return '"' + "".join("\\" + sign if sign in '"\\$`' else sign for sign in word) + '"'
        if style == 2:
            return "".join("\\" + sign if not sign.isalnum() or rng.random() < 0.2 else sign for sign in word) or "''"
        if style == 3 and len(word) > 1:
            at = rng.randrange(1, len(word))
            return self.quoted(word[:at]) + self.quoted(word[at:])
        return word

    def damaged(self, line):
        rng = self.rng
        at = rng.randint(0, len(line))
        to = min(len(line), at + rng.randint(0, 4))
        choice = rng.randrange(5)
        if choice == 0:
            return line[:at] + line[to:]
        if choice == 1:
            return line[:at] + line[at:to] * 2 + line[to:]
        if choice == 2:
            return line[:at] + rng.choice(PIECES) + line[to:]
        return line[:at] + rng.choice(PIECES) + line[at:]
