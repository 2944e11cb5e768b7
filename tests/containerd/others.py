"""What else people set containerd up with, so that it can be scored in the same way."""
import shutil
import subprocess


def run(tool, config, mode):
    """Runs a tool on the file as its manual says; returns how it ended."""
    if tool == "sed":
        # As published in 2021: the name of the default runtime, in place.
        edit = 's/default_runtime_name = "runc"/default_runtime_name = "nvidia"/; s/BinaryName = "runc"/BinaryName = "\\/usr\\/bin\\/nvidia-container-runtime"/'
        return subprocess.run(["sed", "-i", edit, str(config)], capture_output=True, text=True)
    program = shutil.which(tool)
    if program is None:
        raise SystemExit(f"`{tool}` is not there: go install github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk@latest")
    argv = [program, "runtime", "configure", "--runtime=containerd", f"--config={config}",
            "--nvidia-runtime-path=/usr/bin/nvidia-container-runtime"]
    if mode == "default":
        argv.append("--set-as-default")
    return subprocess.run(argv, capture_output=True, text=True)
