"""Hosts of the benchmark's own: an sshd each, with a name, a home and files of its own, in namespaces that go with us."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import time

# A host's address is NET.1.N; the far end of the wire is reached from NEAR.
NET, NEAR, FAR = "10.77", "10.78.0.1", "10.78.0.2"

SSHD = """\
HostKey {work}/host
PidFile none
AuthorizedKeysFile {work}/id.pub
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 1000
MaxSessions 100
AcceptEnv LANG
PrintMotd no
LogLevel ERROR
Subsystem sftp internal-sftp
"""

# What makes an sshd a host: its name, its home, its files. Its processor time is counted apart.
HOST = """\
set -eu
for file in $CGROUPS; do echo $$ >"$file"; done
hostname "$1"
mount -t tmpfs tmpfs /srv
mkdir /srv/home /srv/bench
mount --bind "$WORK/passwd" /etc/passwd
mount --bind "$WORK/names" /etc/hosts
exec "$SSHD" -D -e -f "$WORK/sshd" -o ListenAddress="$2"
"""


def sh(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **more).stdout


class Cgroup:
    """Counts the processor time of all hosts together, under either version of control groups."""

    def __init__(self):
        self.folder = self.counter = None
        name = f"kubeon-bench-{os.environ['KUBEON_BENCH_ID']}-{time.monotonic_ns()}"
        for root, counter, unit in (("/sys/fs/cgroup/cpuacct", "cpuacct.usage", 1e-9), ("/sys/fs/cgroup", "cpu.stat", 1e-6)):
            if pathlib.Path(root, counter).exists():
                self.folder, self.counter, self.unit = pathlib.Path(root, name), counter, unit
                self.folder.mkdir()
                break

    def used_s(self):
        if self.folder is None:
            return float("nan")
        text = (self.folder / self.counter).read_text().split()
        return int(text[text.index("usage_usec") + 1] if "usage_usec" in text else text[0]) * self.unit

    def processes(self):
        return (self.folder / "cgroup.procs").read_text().split() if self.folder else []

    def remove(self):
        if self.folder:
            self.folder.rmdir()


class Lab:
    """COUNT hosts and a wire to them. Only for a process that is the first of its namespaces (see `run`)."""

    def __init__(self, work, floor, count):
        self.work, self.count = work, count
        self.names = {f"host{n:03}": f"{NET}.{1 + n // 250}.{1 + n % 250}" for n in range(count)}
        self.cgroup = Cgroup()
        self._keys()
        sh("ip", "link", "set", "lo", "up")
        subprocess.run(["ip", "route", "add", "local", f"{NET}.0.0/16", "dev", "lo"], check=False, capture_output=True)
        self.sshds = [self._host(name, address) for name, address in self.names.items()]
        self.near = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self._wire(floor)
        self._wait()

    def _keys(self):
        for name in ("id", "host"):
            if not (self.work / name).exists():
                sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / name)
        public = (self.work / "host.pub").read_text().split()
        (self.work / "host.hex").write_text(base64.b64decode(public[1]).hex())
        known = [f"{address} {public[0]} {public[1]}\n" for address in self.names.values()]
        home = self.work / "home" / ".ssh"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.work / "id", home / "id_ed25519")
        (home / "known_hosts").write_text("".join(known))
        (self.work / "sshd").write_text(SSHD.format(work=self.work))
        users = pathlib.Path("/etc/passwd").read_text().splitlines(True)
        others = [line for line in users if not line.startswith("root:")]
        (self.work / "passwd").write_text("root:x:0:0:root:/srv/home:/bin/sh\n" + "".join(others))
        # No name server is within reach.
        names = [f"{address} {name}\n" for name, address in self.names.items()]
        (self.work / "names").write_text("127.0.0.1 localhost\n" + "".join(names))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)

    def _host(self, name, address):
        procs = [str(self.cgroup.folder / "cgroup.procs")] if self.cgroup.folder else []
        env = {"PATH": os.environ["PATH"], "WORK": str(self.work), "SSHD": shutil.which("sshd"), "CGROUPS": " ".join(procs)}
        with open(self.work / "sshd.log", "ab") as log:
            words = ["unshare", "--mount", "--uts", "sh", "-c", HOST, "host", name, address]
            return subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wire(self, floor):
        # Its namespace must be another one before the wire is laid into it.
        ours = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.near.pid}/ns/net") == ours:
            time.sleep(0.01)
        # Late packets would be a longer wire.
        words = ["nice", "-n", "-15", floor, "wire", str(self.near.pid), str(os.getpid())]
        self.wire = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.wire.stdout.readline() == "ready\n", "the wire is not laid: is there /dev/net/tun?"
        for inside, own, peer in ((self.inside(0.001), NEAR, FAR), ([], FAR, NEAR)):
            for line in (f"addr add {own} peer {peer} dev wire0", "link set wire0 up txqueuelen 10000", "link set lo up"):
                sh(*inside, "ip", *line.split())
        sh(*self.inside(0.001), "ip", "route", "add", f"{NET}.0.0/16", "dev", "wire0")

    def _wait(self):
        import socket

        for address, sshd in zip(self.names.values(), self.sshds):
            end = time.monotonic() + 20
            while True:
                try:
                    socket.create_connection((address, 22), 1).close()
                    break
                except OSError:
                    if sshd.poll() is not None or time.monotonic() > end:
                        raise SystemExit("error: sshd does not start: " + (self.work / "sshd.log").read_text()[-500:])
                    time.sleep(0.01)

    def inside(self, wired):
        """The words before a command that puts it at the near end of the wire, or nowhere else."""
        return ["nsenter", f"--net=/proc/{self.near.pid}/ns/net"] if wired else []

    def ask(self, line):
        self.wire.stdin.write(line + "\n")
        self.wire.stdin.flush()
        return self.wire.stdout.readline()

    def delay(self, rtt_ms):
        self.ask(f"delay {int(rtt_ms * 1000)}")

    def take(self):
        return json.loads(self.ask("take"))

    def settle(self):
        """Waits until nothing but the listening sshds is left, and returns the processor time of all hosts so far."""
        end = time.monotonic() + 20
        while len(self.cgroup.processes()) > self.count and time.monotonic() < end:
            time.sleep(0.01)
        return self.cgroup.used_s()

    def close(self):
        self.wire.stdin.close()
        for process in [self.wire, self.near, *self.sshds]:
            process.kill()
            process.wait()
        end = time.monotonic() + 20
        while self.cgroup.processes() and time.monotonic() < end:
            for pid in self.cgroup.processes():
                if int(pid) > 1:
                    os.kill(int(pid), 9)
            time.sleep(0.02)
        self.cgroup.remove()
