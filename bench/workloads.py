"""What is run: each workload as a playbook, as a deploy of pyinfra and as the floor's steps."""

import json

HEAD = "- hosts: all\n  gather_facts: {facts}\n  tasks:\n"
COMMAND = "/bin/true"


class Workload:
    """`prepare` is what each host gets before; `varies` says that every run must find something to do."""

    def __init__(self, name, title, hosts, playbook, pyinfra=None, steps=None, prepare="", varies=False, own_agent=False):
        self.name, self.title, self.hosts, self.playbook = name, title, hosts, playbook
        self.pyinfra, self.steps, self.prepare, self.varies, self.own_agent = pyinfra, steps, prepare, varies, own_agent

    def write(self, work, stamp):
        """Writes its files, and returns their folder."""
        folder = work / self.name
        (folder / "files").mkdir(parents=True, exist_ok=True)
        for n in range(100):
            if "files/" in self.playbook:
                (folder / "files" / f"f{n}").write_text(f"file {n}, {stamp}\n" + f"line {n} of it\n" * 100)
            if "files/" in self.playbook and n >= 50:
                text = (folder / "files" / f"f{n}").read_text()
                (folder / "files" / f"f{n}").write_text(text.replace(f"file {n}", "file {{ item }}"))
        if "large" in self.playbook:
            large(folder / "large", stamp)
        (folder / "site.yml").write_text(self.playbook)
        if self.pyinfra:
            (folder / "deploy.py").write_text(self.pyinfra)
        if self.steps:
            (folder / "steps").write_text("".join(step.format(folder=folder) + "\n" for step in self.steps))
        return folder


def large(path, stamp):
    """200 MB that don't compress, of which a run that varies changes a part."""
    import random

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
    return Workload("C", "20 unchanged `file` tasks on 10 hosts", 10, playbook, deploy, [f"f {path}" for path in paths], prepare)


def many_files(name, varies):
    playbook = HEAD.format(facts="false") + (
        "    - copy: {src: 'files/f{{ item }}', dest: '/srv/bench/f{{ item }}', mode: '0644'}\n"
        "      loop: '{{ range(50) }}'\n"
        "    - template: {src: 'files/f{{ item }}', dest: '/srv/bench/f{{ item }}', mode: '0644'}\n"
        "      loop: '{{ range(50, 100) }}'\n"
    )
    steps = [f"p /srv/bench/f{n} {{folder}}/files/f{n}" for n in range(100)]
    title = f"100 files by `copy` and `template` on 10 hosts, {'all changed' if varies else 'none changed'}"
    return Workload(name, title, 10, playbook, None, steps, varies=varies)


def large_file(name, varies):
    playbook = HEAD.format(facts="false") + "    - copy: {src: large, dest: /srv/bench/large, mode: '0644'}\n"
    title = f"a file of 200 MB on 10 hosts, {'a part of it changed' if varies else 'not changed'}"
    steps = ["p /srv/bench/large {folder}/large"] if varies else None
    return Workload(name, title, 10, playbook, None, steps, varies=varies)


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
