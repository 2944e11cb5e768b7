"""What takes whole hosts, booted by tests/fleet: a public role (F), and `gpu.yml` with nothing to do (G)."""

import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROLE = "nginx"
TITLES = {"F": f"a public role ({ROLE}) twice on a Debian host", "G": "`gpu.yml` again, with nothing to do, on 10 Debian hosts"}


def measure(name, args, work, program, floor):
    """Returns the figures of F or G; both print what they find."""
    print(f"\n{name}: {TITLES[name]}", flush=True)
    return role(args, program) if name == "F" else rerun(args, work, program, floor)


def role(args, program):
    """tests/compat/twins compares what becomes of the hosts, too."""
    if not args.repositories:
        raise SystemExit("error: F takes `--repositories`, a folder with clones as tests/compat/twins wants it")
    words = ["tests/compat/twins", "--timed", "--only", ROLE, "--repositories", args.repositories, "--runner", program]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    print(done.stdout, end="")
    told = re.search(r": (\d+) tasks, changed (\d+) then (\d+).*; kubeon-run ([\d.]+) s then ([\d.]+) s, ansible-core ([\d.]+) s then ([\d.]+)", done.stdout)
    if done.returncode != 0 or not told:
        raise SystemExit(f"error: the role fails:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    numbers = [float(number) for number in told.groups()[3:]]
    return {"tasks": int(told[1]), "changed": [int(told[2]), int(told[3])], "kubeon-run": numbers[:2], "ansible": numbers[2:]}


def rerun(args, work, program, floor):
    figures = pathlib.Path(work) / "rerun.json"
    more = {"MEASURE_PROGRAM": program, "MEASURE_FLOOR": floor, "MEASURE_JSON": figures, "MEASURE_RTT": args.rtt.replace(",", " ")}
    env = os.environ | {name: str(value) for name, value in more.items()}
    if subprocess.run([ROOT / "tests/measure", "rerun"], env=env).returncode != 0:
        raise SystemExit("error: the rerun fails")
    return json.loads(figures.read_text())
