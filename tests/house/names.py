#!/usr/bin/env python3
"""Checks the rules of names on sources that clang-format has formatted (declarations in a namespace begin a line):

* a top folder's code stands in the namespace of the folder, inside plumb, and the code of tests/ in plumb::test;
* no type, and no inline function of the same parameters, is defined in two places;
* names in anonymous namespaces are distinct within a folder, so that its units can be joined.

usage: names.py ROOT
"""
import collections
import re
import sys

from source_files import FOLDERS, source_files

ENDINGS = (".h", ".cpp", ".cu", ".cuh")
TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum|union) (?:alignas\(\w+\) )?(\w+)(?!\w|::)[^;=(]*\{")
ALIAS = re.compile(r"^using (\w+) =")
CONSTANT = re.compile(r"^(?:inline )?(?:constexpr|const|thread_local|static)\b[^(]*?\b(\w+)(?:\[.*?\])?(?:\{|;| =)")
FUNCTION = re.compile(r"^(?!return|else|using|namespace|extern|TEST_CASE|#|//|\}| )[\w:<>,&*\[\] ]+?[ &*](\w+)\((.*)$")
OUTSIDE_ALLOWED = re.compile(r"^(?:extern |#|//|/\*| |\}|\)|$|extern \"C\"|int main\(|template <>|struct fmt::formatter|namespace fs|"
                             r"using |namespace (?:CLI|fmt|re2|std)|class (?:App|RE2);|DOCTEST|TEST_CASE|[A-Z_]+\(|static_assert)")


def parts_of(path):
    """Yields (line number, line, place), where place is "outside", "named", "anonymous", or "opens" for a namespace."""
    places = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith("namespace ") and line.endswith("{") and "=" not in line:
            opened = [piece.strip() for piece in line.split("{")[:-1]]
            for piece in opened:
                places.append("anonymous" if piece == "namespace" else "named")
            yield number, line, "opens"
            continue
        if re.match(r"^\}+\s+// namespace", line):
            del places[-line.index(" "):]
            continue
        if not places:
            yield number, line, "outside"
        else:
            yield number, line, "anonymous" if "anonymous" in places else "named"


def joined(lines, index, first):
    """Returns the text of a declaration's parameters, to the bracket that closes them."""
    text, depth = first, 1
    while True:
        for at, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return re.sub(r"\s+", " ", text[:at])
        index += 1
        if index >= len(lines) or len(text) > 2000:
            return text
        text, depth = text + " " + lines[index][1].strip(), 1


def definitions(root, path):
    """Yields (name, kind, parameters, place, line number) of each definition that begins a line inside a namespace."""
    lines = list(parts_of(f"{root}/{path}"))
    for index, (number, line, place) in enumerate(lines):
        if place not in ("named", "anonymous"):
            continue
        if match := TYPE.match(line):
            yield match.group(1), "type", "", place, number
        elif match := ALIAS.match(line):
            yield match.group(1), "type", "", place, number
        elif match := CONSTANT.match(line):
            yield match.group(1), "constant", "", place, number
        elif (match := FUNCTION.match(line)) and (place == "anonymous" or line.startswith("inline ")):
            yield match.group(1), "function", joined(lines, index, match.group(2)), place, number


def outside_its_namespace(root, path):
    folder = path.split("/")[0]
    # Tests open the namespace of a folder where they define one of its functions in its place.
    wanted = ("namespace plumb::test", "namespace plumb { inline namespace ") if folder == "tests" else (
        f"namespace plumb {{ inline namespace {folder} {{",)
    for number, line, place in parts_of(f"{root}/{path}"):
        if place == "opens" and line.startswith("namespace plumb") and not line.startswith(wanted):
            yield f"{path}:{number}: open {wanted[0]} ... here, the namespace of {folder}/"
        elif place == "outside" and folder != "tests" and not OUTSIDE_ALLOWED.match(line):
            yield f"{path}:{number}: \"{line.strip()[:60]}\" stands outside of the namespace of {folder}/"


def defined_twice(root, paths):
    seen = collections.defaultdict(list)
    for path in paths:
        for name, kind, parameters, place, number in definitions(root, path):
            if place == "named" and (kind == "type" or kind == "function"):
                seen[kind, name, parameters].append(f"{path}:{number}")
    for (kind, name, _), where in sorted(seen.items()):
        if len(where) > 1:
            yield f"{where[1]}: the {kind} {name} is also defined at {where[0]}: one of them needs a name of its own"


def clashing(root, paths, folder_of):
    seen = collections.defaultdict(dict)
    for path in paths:
        for name, kind, parameters, place, number in definitions(root, path):
            if place == "anonymous":
                key = name, parameters if kind == "function" else kind if kind == "type" else ""
                seen[folder_of(path), key].setdefault(path, number)
    for (folder, (name, _)), where in sorted(seen.items()):
        if len(where) > 1:
            first, second = sorted(where.items())[:2]
            yield (f"{second[0]}:{second[1]}: {name} is also a name at {first[0]}:{first[1]}: units of {folder}/ are joined, "
                   "so rename one, or give both one home")


def main():
    root = sys.argv[1]
    own = source_files(root, ENDINGS)
    tests = [path for path in source_files(root, ENDINGS, ["tests"])]
    found = []
    for path in own + tests:
        found += outside_its_namespace(root, path)
    found += defined_twice(root, own)
    found += clashing(root, [path for path in own if path.endswith(".cpp")], lambda path: path.split("/")[0])
    found += clashing(root, [path for path in tests if path.endswith(".cpp")], lambda path: "/".join(path.split("/")[:2]))
    print("\n".join(found) or f"{len(own) + len(tests)} files keep the rules of names")
    sys.exit(1 if found else 0)


main()
