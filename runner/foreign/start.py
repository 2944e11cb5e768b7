# Starts a module written for Ansible on the host: what it imports lies in an archive beside this file.
import base64
import os
import runpy
import sys

archive = os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules.zip")
with open(archive, "wb") as file:
    file.write(base64.b64decode("@ARCHIVE@"))
sys.path[0] = archive
from ansible.module_utils import basic  # noqa: E402

basic._ANSIBLE_ARGS = base64.b64decode("@ARGUMENTS@")
basic._ANSIBLE_PROFILE = "legacy"
runpy.run_module(
    "@NAME@",
    init_globals={"_module_fqn": "@NAME@", "_modlib_path": archive},
    run_name="__main__",
    alter_sys=True,
)
