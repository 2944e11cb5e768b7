"""Random containerd configurations, each from a seed: what people write, in every way that TOML lets them write it."""
import random
import string

RUNC = "io.containerd.runc.v2"
BARE = set(string.ascii_letters + string.digits + "-_")


def configuration(seed, versions):
    """Returns the text that belongs to a seed. `versions` are the configuration versions to choose from."""
    dice = random.Random(seed)
    version = dice.choice(versions)
    text = Writer(dice).document(content(dice, version))
    return spoilt(dice, text)


def content(dice, version):
    plugin = {1: "cri", 2: "io.containerd.grpc.v1.cri"}.get(version, "io.containerd.cri.v1.runtime")
    if dice.random() < 0.05:
        plugin = dice.choice(["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "cri"])
    config = {}
    if version != 1 or dice.random() < 0.5:
        config["version"] = version
    some = lambda share: dice.random() < share
    if some(0.3):
        config["root"] = "/var/lib/containerd"
    if some(0.2):
        config["imports"] = dice.choice([[], ["/etc/containerd/conf.d/*.toml"]])
    if some(0.2):
        config["disabled_plugins"] = dice.sample(["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"], dice.randrange(3))
    if some(0.2):
        config["oom_score"] = dice.choice([0, -999])
    if some(0.3):
        config["grpc"] = {"max_recv_message_size": 16777216}
    if some(0.1):
        config["metrics"] = {"address": "127.0.0.1:1338", "grpc_histogram": dice.random() < 0.5}
    plugins = {}
    if some(0.85):
        plugins[plugin] = cri(dice, version)
    if some(0.2):
        plugins["io.containerd.gc.v1.scheduler"] = {"pause_threshold": 0.02, "deletion_threshold": 0}
    if version >= 3 and some(0.4):
        plugins["io.containerd.cri.v1.images"] = {"snapshotter": "overlayfs", "pinned_images": {"sandbox": "registry.k8s.io/pause:3.10"},
                                                  "registry": {"config_path": "/etc/containerd/certs.d"}}
    if plugins:
        config["plugins"] = plugins
    return config


def cri(dice, version):
    some = lambda share: dice.random() < share
    table = {}
    if version < 3:
        if some(0.5):
            table["sandbox_image"] = "registry.k8s.io/pause:3.9"
        if some(0.2):
            table["systemd_cgroup"] = dice.random() < 0.3
        if some(0.3):
            table["registry"] = registry(dice)
    if some(0.3):
        table["cni"] = {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}
    if some(0.3):
        table["max_container_log_line_size"] = dice.choice([-1, 16384])
    if some(0.2):
        table["enable_selinux"] = dice.random() < 0.3
    if some(0.9):
        table["containerd"] = containerd(dice)
    return table


def registry(dice):
    if dice.random() < 0.5:
        return {"config_path": "/etc/containerd/certs.d"}
    host = "registry.example.com:5000"
    return {"mirrors": {"docker.io": {"endpoint": ["https://mirror.example.com"]}},
            "configs": {host: {"auth": {"username": "u", "password": "hunter2"}, "tls": {"insecure_skip_verify": True}}}}


def containerd(dice):
    some = lambda share: dice.random() < share
    table, runtimes = {}, {}
    if some(0.8):
        runtimes["runc"] = runtime(dice, dice.choice([None, None, "/usr/sbin/runc"]))
    for name, program in [("crun", "/usr/bin/crun"), ("kata", None), ("my.runtime", "/opt/r"), ("with space", "/opt/s")]:
        if some(0.2):
            runtimes[name] = runtime(dice, program)
    if some(0.15):
        runtimes["nvidia"] = runtime(dice, dice.choice(["/usr/bin/nvidia-container-runtime", "/usr/bin/other", None]))
    if some(0.05):
        runtimes["runc"] = runtime(dice, "/usr/bin/nvidia-container-runtime")
    if runtimes and some(0.95):
        table["runtimes"] = runtimes
    if some(0.6):
        table["default_runtime_name"] = dice.choice([*runtimes, "runc"]) if some(0.95) else "nowhere"
    if some(0.2):
        table["snapshotter"] = "native"
    return table


def runtime(dice, program):
    some = lambda share: dice.random() < share
    table = {"runtime_type": RUNC if some(0.9) else dice.choice(["io.containerd.kata.v2", "io.containerd.runc.v1"])}
    if some(0.2):
        table["privileged_without_host_devices"] = True
    if some(0.2):
        table["pod_annotations"] = ["io.example.*", 'with "quotes"']
    if some(0.1):
        table["cni_max_conf_num"] = 1
    options = {}
    if program:
        options["BinaryName"] = program
    if some(0.5):
        options["SystemdCgroup"] = dice.random() < 0.7
    if some(0.1):
        options["NoPivotRoot"] = True
    if some(0.1):
        options["Root"] = "/run/other"
    if options or some(0.1):
        table["options"] = options
    return table


def spoilt(dice, text):
    """Line ends, byte order mark, a missing last newline; now and then a mistake."""
    if dice.random() < 0.1:
        text = text.replace("\n", "\r\n")
    if dice.random() < 0.1:
        text = text.rstrip("\r\n")
    if dice.random() < 0.04:
        text = "\ufeff" + text
    if dice.random() < 0.05:
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(['"', "]", "= ", "[a]\n", "\t", "#", "\n"]) + text[at:]
    return text


class Writer:
    """Writes a value as TOML, in a style that changes from place to place."""

    def __init__(self, dice):
        self.dice = dice
        self.step = dice.choice(["", "", "  ", "    ", "\t"])
        self.quote = dice.choice(['"', "'", None])
        self.comments = dice.choice([0, 0.1, 0.4])
        # Dotted keys and inline tables are rare, and then many.
        self.inline = dice.choice([0, 0, 0.1, 0.5])
        self.dotted = dice.choice([0, 0, 0, 0.2, 0.7])

    def key(self, name):
        if set(name) <= BARE and self.dice.random() < 0.9:
            return name
        return self.text(name)

    def text(self, value):
        quote = self.quote or self.dice.choice(['"', "'"])
        if quote == "'" and "'" not in value:
            return f"'{value}'"
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def value(self, value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int) and value > 9999 and self.dice.random() < 0.3:
            return f"{value:_}"
        if isinstance(value, (int, float)):
            return str(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            gap = self.dice.choice([" ", "", "\n  "])
            return "[" + "".join(f"{gap}{self.value(item)}," for item in value) + (gap if value else "") + "]"
        pairs = ", ".join(f"{self.key(key)} = {self.value(inner)}" for key, inner in value.items())
        return "{ " + pairs + " }" if pairs else "{}"

    def comment(self):
        return self.dice.choice(["  # why", " # \"quoted\" = [", "\t#"]) if self.dice.random() < self.comments else ""

    def document(self, config):
        lines = []
        if self.dice.random() < 0.3:
            lines += ["# Managed by somebody, who wrote [plugins] = here", ""]
        self.table(config, [], lines)
        return "\n".join(lines) + "\n"

    def table(self, table, path, lines):
        """Values first, since a header ends the table before it; then tables, in any order."""
        indent = self.step * max(len(path) - 1, 0)
        inside = indent + (self.step if path else "")
        later = []
        for key, value in self.shuffled(table):
            if not isinstance(value, dict) or self.dice.random() < self.inline and depth(value) < 3:
                lines.append(f"{inside}{self.key(key)} = {self.value(value)}{self.comment()}")
            elif path and self.dice.random() < self.dotted:
                for keys, leaf in leaves(value, [key]):
                    lines.append(f"{inside}{'.'.join(map(self.key, keys))} = {self.value(leaf)}{self.comment()}")
            else:
                later.append((key, value))
        for key, value in later:
            plain = [inner for inner in value.values() if not isinstance(inner, dict)]
            # A header without a value below it may be left out.
            if plain or not value or self.dice.random() < 0.4:
                if self.dice.random() < 0.6:
                    lines.append("")
                if self.dice.random() < self.comments:
                    lines.append(f"{self.step * len(path)}# about {key}")
                header = ".".join(map(self.key, [*path, key]))
                lines.append(f"{self.step * len(path)}[{header}]{self.comment()}")
            self.table(value, [*path, key], lines)

    def shuffled(self, table):
        pairs = list(table.items())
        if self.dice.random() < 0.3:
            self.dice.shuffle(pairs)
        return pairs


def depth(value):
    return 1 + max(map(depth, value.values()), default=0) if isinstance(value, dict) else 0


def leaves(table, path):
    """What is below a table, each with its keys; an empty table is a leaf."""
    if not table:
        yield path, table
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, [*path, key])
        else:
            yield [*path, key], value
