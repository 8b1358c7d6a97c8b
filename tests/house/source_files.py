"""Lists the repository's own source files, and those of them that the latest commits changed.

Commits that .git-blame-ignore-revs lists (renamings and formatting of the whole tree) do not count as changes.
"""
import pathlib
import subprocess
import sys

FOLDERS = ["schedules", "traces", "simulator", "kernels", "planner", "executor", "tools"]
COMMITS = 20  # steps of the main line; older commits were checked when they were new
NEEDS_CUDA = ("executor/machines/cuda/", "executor/cuda_library/entry/")  # these files compile with the toolkit only


def source_files(root, endings, folders=tuple(FOLDERS)):
    """Returns the paths from the root, in order, of files with one of the endings."""
    root = pathlib.Path(root)
    found = []
    for folder in folders:
        found += [str(path.relative_to(root)) for path in (root / folder).rglob("*") if path.suffix in endings]
    return sorted(found)


def _git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.split("\n") if done.returncode == 0 else None


def changed_files(root, endings, folders=tuple(FOLDERS), commits=COMMITS):
    """Returns the members of source_files() that the last commits or the working tree changed, the newest first; all of
    them outside of git."""
    every = source_files(root, endings, folders)
    revisions = _git(root, "log", "--first-parent", f"-{commits}", "--format=%H")
    if revisions is None:
        return every
    ignored_file = pathlib.Path(root) / ".git-blame-ignore-revs"
    ignored = set(ignored_file.read_text().split()) if ignored_file.is_file() else set()
    changed = _git(root, "diff", "--name-only", "HEAD") or []
    changed += _git(root, "ls-files", "--others", "--exclude-standard") or []
    read = [revision for revision in revisions if revision and revision not in ignored]
    if read:
        changed += _git(root, "show", "-m", "--first-parent", "--name-only", "--no-renames", "--format=", *read) or []
    known = set(every)
    return [path for path in dict.fromkeys(changed) if path in known]


if __name__ == "__main__":  # source_files.py ROOT ENDING prints the changed files, a line each
    print("\n".join(path for path in changed_files(sys.argv[1], [sys.argv[2]]) if not path.startswith(NEEDS_CUDA)))
