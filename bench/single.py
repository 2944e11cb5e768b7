"""What is measured of kubeon-run alone: its start, its reading, its memory."""

import json
import socket
import statistics
import subprocess
import threading
import time

import contestants as who
from lab import Lab

TASKS = 10_000
INVENTORY_HOSTS = 100_000
KEPT_HOSTS = 50
KEPT = """\
- hosts: all
  gather_facts: false
  tasks:
    - command: hostname
      register: name
    - setup: {gather_subset: [all]}
    - package_facts:
    - assert: {that: name.stdout != ''}
"""


def timed(bench, work, words):
    """Runs the program and returns what it took."""
    took = work / "took.json"
    env = who.surroundings(work, who.Contestant("kubeon-run", None))
    done = subprocess.run(
        [str(bench.floor), "time", str(took), *map(str, words)],
        env=env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(map(str, words))}:\n{done.stdout[-1500:]}")
    return json.loads(took.read_text())


def first_byte(bench, work, program):
    """From the program's start to the first byte that it sends to a host, in seconds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = []

        def answer():
            near, _ = server.accept()
            with near:
                near.recv(1)
                at.append(time.monotonic())

        thread = threading.Thread(target=answer)
        thread.start()
        port = server.getsockname()[1]
        (work / "one").write_text(f"one ansible_host=127.0.0.1 ansible_port={port} ansible_user=root ansible_ssh_common_args='-F none'\n")
        (work / "one.yml").write_text("- hosts: all\n  tasks:\n    - ping:\n")
        env = who.surroundings(work, who.Contestant("kubeon-run", None))
        begin = time.monotonic()
        subprocess.run([program, "-i", work / "one", work / "one.yml"], env=env, stdin=subprocess.DEVNULL, capture_output=True)
        thread.join()
        return at[0] - begin


def measure(bench, work, program, runs):
    lines = [f"    - name: task {n}\n      command: /bin/echo {n} {{{{ inventory_hostname }}}}\n" for n in range(TASKS)]
    (work / "tasks.yml").write_text("- hosts: all\n  gather_facts: false\n  tasks:\n" + "".join(lines))
    (work / "few").write_text("one\n")
    names = [f"h{n:06} ansible_host=10.{n >> 16}.{n >> 8 & 255}.{n & 255} rack=r{n % 100}\n" for n in range(INVENTORY_HOSTS)]
    (work / "many").write_text("[racks]\n" + "".join(names) + "[racks:vars]\nansible_user=root\n")
    (work / "ping.yml").write_text("- hosts: racks\n  gather_facts: false\n  tasks:\n    - ping:\n")

    def best(words, times=runs):
        ran = [timed(bench, work, words) for _ in range(times)]
        return {key: min(run[key] for run in ran) for key in ("wall_s", "cpu_s", "memory_kib")}

    socket_at = [first_byte(bench, work, program) for _ in range(runs)]
    found = {
        "first_byte": {"wall_s": min(socket_at), "median_s": statistics.median(socket_at)},
        "check": best([program, "check", "-i", work / "few", work / "tasks.yml"]),
        "inventory": best([program, "check", "-i", work / "many", work / "ping.yml"]),
    }
    lab = Lab(work, str(bench.floor), KEPT_HOSTS)
    try:
        who.inventory(work, lab)
        (work / "kept.yml").write_text(KEPT)
        # Twice, for the first run brings the agents; most of it is apt telling where packages come from.
        found["kept"] = best([program, "-i", work / "hosts", work / "kept.yml"], 2)
    finally:
        lab.close()
    for name, what in (
        ("first_byte", "start to first byte"),
        ("check", f"`check` of {TASKS} tasks"),
        ("inventory", f"inventory of {INVENTORY_HOSTS} hosts"),
        ("kept", f"facts and packages of {KEPT_HOSTS} hosts kept"),
    ):
        memory = found[name].get("memory_kib")
        print(f"{what}: {found[name]['wall_s']:.3f} s" + (f", {memory / 1024:.1f} MiB" if memory else ""))
    return found
