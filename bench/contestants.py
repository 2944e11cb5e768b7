"""Who runs it: command lines and surroundings of each contestant."""

import json
import os
import pathlib
import re
import subprocess

FORKS = 50


class Contestant:
    """`slow` ones may be run less often; a `peer` that fails is left out of a workload, and others end it; `recap` says that the output counts changes as Ansible's does."""

    def __init__(self, name, command, env=None, slow=False, recap=False, peer=False):
        self.name, self.command, self.env, self.slow, self.recap = name, command, env or {}, slow, recap
        self.peer = peer

    def changes(self, output):
        """Whether a run changed anything; None where its output does not tell."""
        told = re.findall(r"\bchanged=(\d+)", output) if self.recap else []
        return any(int(count) for count in told) if told else None


def versions(venv):
    """Returns the peers' versions by their names."""
    words = [venv / "bin/pip", "list", "--format", "json", "--disable-pip-version-check"]
    installed = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {each["name"]: each["version"] for each in installed if each["name"] in ("ansible-core", "mitogen", "pyinfra")}


def inventory(work, lab):
    """Writes the inventories, and returns their paths: Ansible's form, pyinfra's, the floor's."""
    known = work / "home" / ".ssh" / "known_hosts"
    ini = [
        "[all:vars]",
        "ansible_user=root",
        f"ansible_ssh_private_key_file={work}/home/.ssh/id_ed25519",
        f"ansible_ssh_common_args='-F none -o UserKnownHostsFile={known}'",
        "ansible_python_interpreter=/usr/bin/python3",
        "[all]",
        *(f"{name} ansible_host={address}" for name, address in lab.names.items()),
    ]
    (work / "hosts").write_text("\n".join(ini) + "\n")
    data = {
        "ssh_user": "root",
        "ssh_key": f"{work}/home/.ssh/id_ed25519",
        "ssh_known_hosts_file": str(known),
        "ssh_strict_host_key_checking": "yes",
    }
    hosts = [(address, data) for address in lab.names.values()]
    (work / "inventory.py").write_text(f"hosts = {hosts!r}\n")
    (work / "addresses").write_text("".join(f"{address}\n" for address in lab.names.values()))


def all_of(work, program, floor, venv):
    """Returns what can take part here."""

    def kubeon(workload, folder):
        return [program, "-i", work / "hosts", folder / "site.yml"]

    def floor_of(mode):
        def command(workload, folder):
            if workload.steps is None or (mode == "exec" and not all(step[:2] in ("c ", "f ") for step in workload.steps)):
                return None
            agent = [program, "agent"] if workload.own_agent else [floor, "agent"]
            return [floor, "run", mode, work / "addresses", work / "id", work / "host.hex", folder / "steps", *agent]

        return command

    def ansible(workload, folder):
        return [venv / "bin/ansible-playbook", "-f", str(FORKS), "-i", work / "hosts", folder / "site.yml"]

    def pyinfra(workload, folder):
        return workload.pyinfra and [venv / "bin/pyinfra", "-y", work / "inventory.py", folder / "deploy.py"]

    found = [
        Contestant("floor", floor_of("frame")),
        Contestant("floor-pipelined", floor_of("pipelined")),
        Contestant("floor-exec", floor_of("exec")),
        Contestant("kubeon-run", kubeon, recap=True),
        Contestant("kubeon-run-ahead", kubeon, {"KUBEON_SEND_AHEAD": "safe"}, recap=True),
        Contestant("kubeon-run-all", kubeon, {"KUBEON_SEND_AHEAD": "all"}, recap=True),
    ]
    if venv:
        (work / "ansible.cfg").write_text("[defaults]\n")
        usual = {"ANSIBLE_CONFIG": str(work / "ansible.cfg"), "ANSIBLE_HOME": str(work / "home/.ansible"), "ANSIBLE_NOCOLOR": "1"}
        found += [
            Contestant("pyinfra", pyinfra, peer=True),
            Contestant("ansible", ansible, usual, slow=True, recap=True, peer=True),
            Contestant("ansible-pipelining", ansible, usual | {"ANSIBLE_PIPELINING": "1"}, slow=True, recap=True, peer=True),
        ]
        plugins = list(venv.glob("lib/python3*/site-packages/ansible_mitogen/plugins/strategy"))
        if plugins:
            mitogen = {"ANSIBLE_STRATEGY_PLUGINS": str(plugins[0]), "ANSIBLE_STRATEGY": "mitogen_linear"}
            found.append(Contestant("mitogen", ansible, usual | mitogen, slow=True, recap=True, peer=True))
    return found


def surroundings(work, contestant):
    """The environment of a run: nothing of this machine's configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(work / "home"),
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "ignore",
        **contestant.env,
    }


def end_masters():
    """Ends the connections that ssh keeps for later runs: every run starts without. All processes seen are ours."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text() == "ssh\n":
                os.kill(int(entry.name), 15)
        except OSError:
            pass
