"""What must hold, as ratios and figures of one run."""

import workloads as what


def wall(figures, name):
    return figures[name]["wall_s"]["min"]


def judged(everything):
    """Yields each goal that this run can judge: its words, what is, what may be."""
    for name, by_rtt in everything["workloads"].items():
        hosts = what.named(name).hosts
        for rtt, figures in by_rtt.items():
            if "kubeon-run" not in figures:
                continue
            own = figures["kubeon-run"]
            at = f"{name} at {rtt:g} ms"
            if "floor" in figures and rtt == 0 and name in "ABCH":
                limit = 2.0 if name == "H" else 1.5
                yield f"{at}: time to the floor's", wall(figures, "kubeon-run") / wall(figures, "floor"), limit
                yield f"{at}: processor time to the floor's", own["cpu_s"]["min"] / figures["floor"]["cpu_s"]["min"], 2.0
            if "floor-pipelined" in figures and rtt == 20 and name == "A":
                # By default hosts in step wait for one another, which the floor's do not.
                for contestant in ("kubeon-run", "kubeon-run-all"):
                    if contestant in figures:
                        ratio = wall(figures, contestant) / wall(figures, "floor-pipelined")
                        yield f"{at}: time of {contestant} to the pipelined floor's", ratio, 1.5
            if rtt == 0 and name in "ABC":
                for peer, times in (("ansible", 60), ("pyinfra", 4)):
                    if peer in figures:
                        yield f"{at}: time to 1/{times} of {peer}'s", wall(figures, "kubeon-run") * times / wall(figures, peer), 1.0
            yield f"{at}: MiB of memory", own["memory_kib"]["min"] / 1024, 20 + hosts * 100 / 1024
    for rtt, figures in everything["fleet"].get("G", {}).items():
        if rtt == "20":
            yield "G at 20 ms: round trips a host", figures["round_trips"] / figures["hosts"], 5
    single = everything["single"]
    if single:
        yield "start to first byte, ms", single["first_byte"]["wall_s"] * 1000, 30
        yield "`check` of 10,000 tasks, s", single["check"]["wall_s"], 0.5
        yield "inventory of 100,000 hosts, s", single["inventory"]["wall_s"], 2
        yield "inventory of 100,000 hosts, MiB", single["inventory"]["memory_kib"] / 1024, 300
        yield "facts and packages of 50 hosts kept, MiB", single["kept"]["memory_kib"] / 1024, 20 + 50 * 100 / 1024


def judge(everything):
    """Prints every goal and, last, whether all hold; returns the exit status."""
    print()
    missed = 0
    for words, found, limit in judged(everything):
        holds = found <= limit
        missed += not holds
        print(f"{'holds ' if holds else 'MISSED'} {words}: {found:.2f}, at most {limit:.2f}")
    print("all goals hold" if not missed else f"{missed} goals are missed")
    return 1 if missed else 0
