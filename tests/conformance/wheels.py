"""Files of public Python packages."""

import hashlib
import os
import subprocess
import sys
import zipfile


def fetched(tool, package, digest, ending):
    """The files of a package that end so, by name, or None if it cannot be had."""
    folder = tool.work.parent / "wheels" / package.replace("==", "-")
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                "--python-version=3.11", "--platform=manylinux_2_17_x86_64", "--dest", folder, package]
        if subprocess.run(call, check=False).returncode != 0:
            return None
        (wheel,) = folder.glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != digest:
            raise SystemExit(f"{wheel.name} has the digest {found}, not {digest}")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(ending):
                    (folder / os.path.basename(member)).write_bytes(archive.read(member))
        wheel.unlink()
        (folder / "complete").touch()
    return {file.stem: file for file in folder.glob(f"*{ending}")}
