"""What a case must come to on a daemon, and by whom that is said: its folder, or what is known of the usual cases.

A verdict is one letter: E edit, N nothing to do, R refuse; `?` leaves it to the judge. Where the modes differ, it is
two: the first for `default`, the last for `runtime_class`.

A folder of cases says its own in `verdicts.json`: the name of a case (or how it begins) to one of

    "EDIT"                                        on every daemon
    {"0": "REFUSE", "2.0": "EDIT"}                from that version of containerd on
    {"verdict": …, "options": {"migrate": true}}  and EDIT once the task has these options, too

with EDIT, NOOP, REFUSE (or MIGRATE, OTHERFILE, which refuse), or two of them, `NOOP/EDIT`. Without that file, a table in
its README.md or that of the folder above is read: `| name | source | VERDICT … |`. Words there may hold for some
daemons only, so any of them is taken.
"""
import json
import re

LETTERS = {"EDIT": "E", "NOOP": "N", "REFUSE": "R", "MIGRATE": "R", "OTHERFILE": "R", "REPORT": "?"}

# The usual cases, by a daemon's (major, minor).
USUAL = {
    "01": lambda v: "E", "02": lambda v: "E", "03": lambda v: "E",
    "04": lambda v: "E" if v >= (2, 0) else "R",
    "05": lambda v: "E" if v >= (2, 3) else "R",
    "06": lambda v: "R", "07": lambda v: "R", "08": lambda v: "R", "09": lambda v: "R", "10": lambda v: "R",
    "11": lambda v: "R", "12": lambda v: "R",
    "14": lambda v: "E" if v >= (2, 3) else "R",
    "15": lambda v: "E" if v >= (2, 0) else "R",
    "16": lambda v: "E", "17": lambda v: "R",
    "19": lambda v: "E" if v >= (2, 0) else "R",
    "20": lambda v: "N" if v >= (2, 3) else "R",
    "21": lambda v: "R", "22": lambda v: "R",
    "25": lambda v: "NE",
    "27": lambda v: "R" if v < (2, 0) else "E",
    "29": lambda v: "E", "30": lambda v: "R",
    "32": lambda v: "N" if v >= (2, 3) else "R",
    "33": lambda v: "E", "34": lambda v: "E",
    "36": lambda v: "E" if v < (2, 0) else "R",
    "37": lambda v: "R", "39-v2-root": lambda v: "E",
    "40": lambda v: "R", "41": lambda v: "R",
    "39+99-nvidia-v4": lambda v: "R" if v >= (1, 7) else "E",
    "39+99-nvidia-v2": lambda v: "R" if v < (2, 0) else "EN",
}
# The same with what a user may add.
OPTED = {
    "06": {"enable_cri": True, "migrate": True}, "07": {"enable_cri": True, "migrate": True},
    "09": {"migrate": True, "repair": True}, "10": {"migrate": True}, "17": {"repair": True}, "32": {"migrate": True},
}


class Verdicts:
    def __init__(self, folder, usual):
        """`usual` says that the folder's cases are those that USUAL is about."""
        own = folder / "verdicts.json"
        self.usual = usual and not own.exists()
        self.own = json.loads(own.read_text()) if own.exists() else {}
        self.told = {} if self.own or self.usual else told(folder)

    def entry(self, name):
        names = [key for key in self.own if name == key or name.startswith(key)]
        found = self.own[max(names, key=len)] if names else "?"
        return found if isinstance(found, dict) and "verdict" in found else {"verdict": found}

    def wanted(self, name, version):
        """Returns the letters; several of [ENR] in a set mean that any will do."""
        if self.usual:
            return next((verdict(version) for prefix, verdict in USUAL.items() if name.startswith(prefix)), "?")
        if self.told:
            return next((words for key, words in self.told.items() if name.startswith(key)), "?")
        verdict = self.entry(name)["verdict"]
        if isinstance(verdict, dict):
            since = [key for key in verdict if tuple(map(int, key.split("."))) <= tuple(version)]
            verdict = verdict[max(since, key=lambda key: tuple(map(int, key.split("."))))] if since else "?"
        return "".join(LETTERS.get(word, "?") for word in verdict.split("/"))

    def options(self, name, version):
        """Returns what a user may add so that the file is edited after all; None where nothing helps."""
        if not self.usual:
            return self.entry(name).get("options")
        options = next((found for prefix, found in OPTED.items() if name.startswith(prefix)), None)
        # The runtime type of this one is heeded here, and can't start NVIDIA's program.
        if name.startswith("10") and (version < (2, 0) or version >= (2, 3)):
            return {**options, "repair": True}
        return None if name.startswith("32") and version >= (2, 3) else options


def told(folder):
    """Reads a table of verdicts from a README.md."""
    for path in (folder / "README.md", folder.parent / "README.md"):
        if not path.exists():
            continue
        found = {}
        for line in path.read_text().splitlines():
            cells = [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
            words = {LETTERS[word] for cell in cells[1:] for word in re.findall(r"\b[A-Z]{4,9}\b", cell) if word in LETTERS}
            for name in names_of(cells[0]) if len(cells) > 1 and words else []:
                found[name] = "?" if "?" in words else "{" + "".join(sorted(words)) + "}"
        if found:
            return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))
    return {}


def names_of(cell):
    """`02,03-v2-default` and `29 dotted keys, 36 BOM` name two cases each, by how they begin."""
    numbers = re.findall(r"(?:^|[,+ ])(\d\d)(?=[-, ]|$)", cell)
    return [number + "-" for number in numbers] or [cell.split()[0]] if cell else []


def fits(letter, wanted, mode):
    """Whether what happened, one of E, N and R, is what was wanted in this mode."""
    if wanted.startswith("{"):
        return letter in wanted
    wanted = wanted[0] if mode == "default" else wanted[-1]
    return wanted in (letter, "?")
