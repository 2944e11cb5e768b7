# Collects what a module written for Ansible imports of ansible.module_utils and of collections, for the host that runs
# it: a zip archive in base64 on standard output. Runs here, with a Python that has ansible-core; ends with 3 without it.
import ast
import base64
import io
import json
import os
import sys
import zipfile

try:
    import ansible.release
except ImportError:
    sys.exit(3)

wanted = json.load(sys.stdin)
core = os.path.dirname(ansible.release.__file__)
release = "__version__ = %r\n__author__ = ''\n" % ansible.release.__version__
contents = {"ansible/__init__.py": release, "ansible/module_utils/__init__.py": ""}
waiting = []


def find(parts):
    """Returns the file of a dotted name, and whether it is a package; None where there is no such name."""
    if parts[:2] == ["ansible", "module_utils"]:
        bases = [os.path.join(folder, *parts[2:]) for folder in wanted["module_utils"]]
        bases.append(os.path.join(core, *parts[1:]))
    elif parts[0] == "ansible_collections":
        bases = [os.path.join(root, *parts) for root in wanted["collections"]]
    else:
        return None
    for base in bases:
        if os.path.isfile(base + ".py"):
            return base + ".py", False
        if os.path.isdir(base):
            start = os.path.join(base, "__init__.py")
            return start if os.path.isfile(start) else None, True
    return None


def need(parts):
    """Adds a dotted name, and the packages that it is in, as far as they are files."""
    for count in range(1, len(parts) + 1):
        name = parts[:count]
        if name == ["ansible"]:
            continue
        found = find(name)
        if found is None:
            return
        path, is_package = found
        inside = "/".join(name) + ("/__init__.py" if is_package else ".py")
        if inside not in contents:
            text = open(path, encoding="utf-8").read() if path else ""
            contents[inside] = text
            waiting.append((text, name if is_package else name[:-1]))


def imports(text, package):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for name in node.names:
                need(name.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            need(base)
            for name in node.names:
                need(base + [name.name])


module = open(wanted["module"], encoding="utf-8").read()
name = wanted["name"].split(".")
for count in range(1, len(name)):
    contents.setdefault("/".join(name[:count]) + "/__init__.py", "")
contents["/".join(name) + ".py"] = module
need(["ansible", "module_utils", "basic"])
waiting.append((module, name[:-1]))
while waiting:
    imports(*waiting.pop())
# What reads the arguments and writes the result is looked for by its name, since ansible-core 2.19.
profiles = ["ansible", "module_utils", "_internal", "_json", "_profiles"]
folder = os.path.join(core, *profiles[1:])
if os.path.isdir(folder):
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py"):
            need(profiles + [file[:-3]])
    while waiting:
        imports(*waiting.pop())

archive = io.BytesIO()
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
    for inside in sorted(contents):
        writer.writestr(inside, contents[inside])
sys.stdout.write(base64.b64encode(archive.getvalue()).decode("ascii"))
