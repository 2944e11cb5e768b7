"""What is run: each workload as a playbook, as a deploy of pyinfra and as the floor's steps."""

import json
import random
import re

HEAD = "- hosts: all\n  gather_facts: {facts}\n  tasks:\n"
COMMAND = "/bin/true"


class Workload:
    """`prepare` is what each host gets before; `changes` whether a run finds something to do, None where that is not told.
    `files(folder, stamp)` writes what is sent, another content for another stamp."""

    def __init__(self, name, title, hosts, playbook, pyinfra=None, steps=None, prepare="", changes=None, files=None, own_agent=False):
        self.name, self.title, self.hosts, self.playbook, self.prepare = name, title, hosts, playbook, prepare
        self.pyinfra, self.steps, self.changes, self.files, self.own_agent = pyinfra, steps, changes, files, own_agent

    def write(self, work, stamp):
        """Writes its files, and returns their folder."""
        folder = work / self.name
        folder.mkdir(parents=True, exist_ok=True)
        if self.files:
            self.files(folder, stamp)
        (folder / "site.yml").write_text(self.playbook)
        if self.pyinfra:
            (folder / "deploy.py").write_text(self.pyinfra)
        if self.steps:
            (folder / "steps").write_text("".join(step.format(folder=folder) + "\n" for step in self.steps))
        return folder


def small_files(folder, stamp):
    """100 files; of the last 50 also the templates they are made from."""
    for name in ("files", "templates"):
        (folder / name).mkdir(exist_ok=True)
    for n in range(100):
        lines = f"line {n} of it\n" * 100
        (folder / "files" / f"f{n}").write_text(f"file {n}, {stamp}\n" + lines)
        (folder / "templates" / f"f{n}").write_text(f"file {{{{ item }}}}, {stamp}\n" + lines)


def large(folder, stamp):
    """200 MB that don't compress, of which a part is another one for each stamp."""
    path = folder / "large"
    if not path.exists():
        source = random.Random(1)
        with open(path, "wb") as file:
            for _ in range(200):
                file.write(source.randbytes(1 << 20))
    with open(path, "r+b") as file:
        file.seek(1 << 20)
        file.write(f"{stamp:20}".encode())


def commands(name, hosts, count):
    playbook = HEAD.format(facts="false") + f"    - command: {COMMAND}\n" * count
    deploy = "from pyinfra.operations import server\n" + f"server.shell(commands=['{COMMAND}'])\n" * count
    return Workload(name, f"{count} commands on {hosts} hosts", hosts, playbook, deploy, [f"c {COMMAND}"] * count)


def files():
    paths = [f"/srv/bench/d{n}" for n in range(20)]
    playbook = HEAD.format(facts="false") + "".join(
        f"    - file: {{path: {path}, state: directory, mode: '0755', owner: root}}\n" for path in paths
    )
    deploy = "from pyinfra.operations import files\n" + "".join(
        f"files.directory(path='{path}', mode='755', user='root')\n" for path in paths
    )
    prepare = " && ".join(f"mkdir -p {path} && chmod 755 {path}" for path in paths)
    steps = [f"f {path}" for path in paths]
    return Workload("C", "20 unchanged `file` tasks on 10 hosts", 10, playbook, deploy, steps, prepare, changes=False)


def many_files(name, changes):
    playbook = HEAD.format(facts="false") + (
        "    - copy: {src: 'files/f{{ item }}', dest: '/srv/bench/f{{ item }}', mode: '0644'}\n"
        "      loop: '{{ range(50) }}'\n"
        "    - template: {src: 'templates/f{{ item }}', dest: '/srv/bench/f{{ item }}', mode: '0644'}\n"
        "      loop: '{{ range(50, 100) }}'\n"
    )
    deploy = (
        "from pyinfra.operations import files\n"
        "for n in range(50):\n    files.put(src=f'files/f{n}', dest=f'/srv/bench/f{n}', mode='644')\n"
        "for n in range(50, 100):\n    files.template(src=f'templates/f{n}', dest=f'/srv/bench/f{n}', mode='644', item=n)\n"
    )
    steps = [f"p /srv/bench/f{n} {{folder}}/files/f{n}" for n in range(100)]
    title = f"100 files by `copy` and `template` on 10 hosts, {'all changed' if changes else 'none changed'}"
    return Workload(name, title, 10, playbook, deploy, steps, changes=changes, files=small_files)


def large_file(name, changes):
    playbook = HEAD.format(facts="false") + "    - copy: {src: large, dest: /srv/bench/large, mode: '0644'}\n"
    deploy = "from pyinfra.operations import files\nfiles.put(src='large', dest='/srv/bench/large', mode='644')\n"
    title = f"a file of 200 MB on 10 hosts, {'a part of it changed' if changes else 'not changed'}"
    steps = ["p /srv/bench/large {folder}/large"] if changes else None
    return Workload(name, title, 10, playbook, deploy, steps, changes=changes, files=large)


def facts():
    task = {"run": {"id": 1, "module": "setup", "args": {}}}
    steps = ["k " + json.dumps(task).replace("{", "{{").replace("}", "}}")]
    playbook = HEAD.format(facts="true").replace("  tasks:\n", "")
    return Workload("H", "facts of 50 hosts", 50, playbook, None, steps, own_agent=True)


ALL = [
    commands("A", 10, 20),
    commands("B", 50, 10),
    files(),
    many_files("D", True),
    many_files("Du", False),
    large_file("E", True),
    large_file("Eu", False),
    facts(),
    commands("L", 200, 10),
]
USUAL = ["A", "B", "C", "H"]


def named(name):
    """Returns a workload by its name; `HOSTSxTASKS` is that many commands on that many hosts."""
    sized = re.fullmatch(r"(\d+)x(\d+)", name)
    return commands(name, *map(int, sized.groups())) if sized else next((each for each in ALL if each.name == name), None)
