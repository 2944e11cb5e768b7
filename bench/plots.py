"""Draws docs/speed from the figures that are kept, and fills the tables of docs/speed.md and README.md."""

import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import matplotlib.ticker  # noqa: E402

sys.dont_write_bytecode = True
import workloads as what  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = {
    "ansible": ("ansible-core", "#c0392b"),
    "ansible-pipelining": ("ansible-core, pipelining", "#e08e79"),
    "mitogen": ("ansible-core, Mitogen", "#b07aa1"),
    "pyinfra": ("pyinfra", "#d4a017"),
    "kubeon-run": ("kubeon-run", "#1f6fb4"),
    "kubeon-run-ahead": ("kubeon-run, tasks sent ahead", "#7fb3dd"),
    "kubeon-run-all": ("kubeon-run, all sent ahead", "#2a9d8f"),
    "floor": ("the floor", "#555555"),
    "floor-pipelined": ("the floor, all frames at once", "#aaaaaa"),
}
COLUMNS = ["floor", "kubeon-run", "pyinfra", "mitogen", "ansible-pipelining", "ansible"]
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "kubeon-run", "font.family": "sans-serif", "font.size": 10}


def sizes(name):
    """Hosts and tasks of a workload that is nothing but commands, else None."""
    found = re.fullmatch(r"(\d+) commands on (\d+) hosts", what.named(name).title)
    return found and (int(found[2]), int(found[1]))


def draw(path, title, label, points):
    """`points` are (x, figures of all contestants)."""
    points = sorted(points, key=lambda point: point[0])
    if len(points) < 2:
        print(f"{path.name}: too few figures, left as it is", file=sys.stderr)
        return
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for name, (words, colour) in LINES.items():
        line = [(x, figures[name]["wall_s"]["min"]) for x, figures in points if name in figures]
        if line:
            axes.plot(*zip(*line), marker="o", markersize=4, color=colour, label=words, linewidth=2 if name == "kubeon-run" else 1.2)
    axes.set(yscale="log", xlabel=label, ylabel="seconds", title=title)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axes.set_xticks([x for x, _ in points])
    axes.grid(axis="y", which="major", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def named(name, rtt):
    title = what.named(name).title
    return title if rtt == "0" else f"{title}, {rtt} ms"


def summary(kept, wanted):
    """A row a workload: the least wall time of each, and how many times the floor's it is."""
    rows = []
    for name, by_rtt in kept["workloads"].items():
        for rtt, figures in by_rtt.items():
            if not wanted(name, rtt):
                continue
            floor = figures.get("floor", {}).get("wall_s", {}).get("min")
            cells = [named(name, rtt)]
            for column in COLUMNS:
                least = figures.get(column, {}).get("wall_s", {}).get("min")
                times = f" ({number(least / floor)}×)" if least and floor and column != "floor" else ""
                cells.append(f"{number(least)} s{times}" if least else "")
            rows.append(cells)
    used = [at for at, name in enumerate(COLUMNS, 1) if any(row[at] for row in rows)]
    head = ["", *("the floor" if COLUMNS[at - 1] == "floor" else LINES[COLUMNS[at - 1]][0] for at in used)]
    return table([head, *([row[0], *(row[at] for at in used)] for row in rows)])


def details(kept):
    """Everything that was measured, a row a contestant."""
    head = ["", "runs", "wall s", "median", "× floor", "CPU s", "× floor", "hosts' CPU s", "MiB", "kB", "round trips a host"]
    parts = []
    for name, by_rtt in kept["workloads"].items():
        hosts = what.named(name).hosts
        for rtt, figures in by_rtt.items():
            rows = [head]
            floor = figures.get("floor")
            for contestant, of in figures.items():
                times = lambda key: number(of[key]["min"] / floor[key]["min"]) if floor else ""  # noqa: B023, E731
                rows.append([
                    f"`{contestant}`", str(of["runs"]), number(of["wall_s"]["min"]), number(of["wall_s"]["median"]), times("wall_s"),
                    number(of["cpu_s"]["min"]), times("cpu_s"), number(of["target_cpu_s"]["min"]), number(of["memory_kib"]["min"] / 1024),
                    f"{of['bytes'] / 1000:.0f}", f"{of['round_trips'] / hosts:.0f}",
                ])  # fmt: skip
            parts.append(f"### {name}: {named(name, rtt)}\n\n{table(rows)}")
    return "\n".join(parts)


def single(kept):
    rows = [["", "wall s", "CPU s", "MiB"]]
    words = {
        "first_byte": "from the start to the first byte sent to a host",
        "check": "`check` of a playbook of 10,000 tasks",
        "inventory": "reading an inventory of 100,000 hosts",
        "kept": "facts and packages of 50 hosts, gathered and kept",
    }
    for name, of in kept["single"].items():
        memory = f"{of['memory_kib'] / 1024:.1f}" if "memory_kib" in of else ""
        rows.append([words[name], f"{of['wall_s']:.3f}", f"{of['cpu_s']:.2f}" if "cpu_s" in of else "", memory])
    return table(rows)


def table(rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def fill(path, parts):
    """Puts each part between the comments that name it."""
    text = path.read_text()
    for name, part in parts.items():
        text, count = re.subn(rf"(<!-- bench: {name} -->\n).*?(<!-- end -->)", lambda m: m[1] + part + m[2], text, flags=re.S)
        assert count == 1, f"{path} has no place for {name}"
    path.write_text(text)


def main():
    kept = json.loads((ROOT / "bench/figures.json").read_text())
    order = [workload.name for workload in what.ALL]
    place = lambda name: (order.index(name) if name in order else len(order), name)  # noqa: E731
    kept["workloads"] = {name: kept["workloads"][name] for name in sorted(kept["workloads"], key=place)}
    plt.rcParams.update(SETTINGS)
    folder = ROOT / "docs/speed"
    folder.mkdir(exist_ok=True)
    commands = [(sizes(name), by_rtt) for name, by_rtt in kept["workloads"].items() if sizes(name)]
    here = [(size, by_rtt["0"]) for size, by_rtt in commands if "0" in by_rtt]
    draw(folder / "hosts.svg", "10 commands", "hosts", [(hosts, figures) for (hosts, tasks), figures in here if tasks == 10])
    draw(folder / "tasks.svg", "commands on 10 hosts", "commands", [(tasks, figures) for (hosts, tasks), figures in here if hosts == 10])
    far = [(float(rtt), figures) for rtt, figures in kept["workloads"].get("A", {}).items()]
    draw(folder / "round-trips.svg", "20 commands on 10 hosts", "round-trip time, ms", far)
    versions = ", ".join(f"{name} {version}" for name, version in kept["versions"].items()) + "\n"
    fill(ROOT / "docs/speed.md", {
        "versions": versions, "summary": summary(kept, lambda *_: True), "details": details(kept), "single": single(kept),
    })  # fmt: skip
    fill(ROOT / "README.md", {"summary": summary(kept, lambda name, rtt: rtt == "0" and name in "ABC")})


main()
