#!/usr/bin/env python3
"""Installs the packages that tools/package made, each in a bare root file system, and asks them a question there.

usage: packages_test.py FOLDER

The roots are Debian's minimal one with Python (debootstrap), and an empty folder for the binary alone. Without root,
debootstrap or a mirror the cases that need them skip with a reason.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
QUESTION = ["plan", "llama-3-8b", "h100:16", "--global-batch", "128", "--json"]


def package(pattern):
    found = sorted(FOLDER.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def in_root(root, *words):
    return subprocess.run(["chroot", str(root), *words], capture_output=True, text=True,
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"})


@unittest.skipUnless(os.geteuid() == 0, "chroot needs root")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="plumb-root-")
        cls.addClassCleanup(cls.holder.cleanup)

    def empty_root(self, name):
        root = pathlib.Path(self.holder.name, name)
        root.mkdir()
        return root

    def debian_root(self):
        """Returns Debian's minimal root with Python, which the cases share since it takes minutes to make."""
        root = pathlib.Path(self.holder.name, "debian")
        if shutil.which("debootstrap") is None:
            self.skipTest("there is no debootstrap")
        if not root.exists():
            made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-minimal,python3-pip", "bookworm", str(root)],
                                  capture_output=True, text=True)
            if made.returncode != 0:
                self.skipTest(f"debootstrap: {made.stdout.splitlines()[-1:]}")
        return root

    def answers(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(json.loads(result.stdout)["best"]["prediction"]["step_time_s"], 1)

    def test_the_binary_runs_where_there_is_nothing_else(self):
        root = self.empty_root("empty")
        shutil.copy(package("plumb-*-linux-*"), root / "plumb")
        self.answers(in_root(root, "/plumb", *QUESTION))

    def test_the_debian_package_installs_and_answers(self):
        root = self.debian_root()
        shutil.copy(package("plumb_*.deb"), root / "plumb.deb")
        installed = in_root(root, "dpkg", "--install", "/plumb.deb")
        self.assertEqual(installed.returncode, 0, installed.stderr)
        self.answers(in_root(root, "plumb", *QUESTION))
        self.assertTrue((root / "usr/share/bash-completion/completions/plumb").exists())
        removed = in_root(root, "dpkg", "--remove", "plumb")
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertFalse((root / "usr/bin/plumb").exists())

    def test_the_wheel_installs_and_answers(self):
        root = self.debian_root()
        wheel = package("plumb-*.whl")
        shutil.copy(wheel, root / wheel.name)
        installed = in_root(root, "pip", "install", "--no-index", "--break-system-packages", f"/{wheel.name}")
        self.assertEqual(installed.returncode, 0, installed.stderr)
        self.answers(in_root(root, "plumb", *QUESTION))
        asked = in_root(root, "python3", "-c", "import plumb; print(plumb.schedule('1f1b', p=2, m=2)['ranks'][0])")
        self.assertEqual(asked.stdout.strip(), "0F0 0F1 0B0 0B1", asked.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
