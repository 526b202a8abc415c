#!/usr/bin/env python3
"""What the program is made of, by cargo: the licences of all crates that are linked into it, and
the same crates as a bill of materials (CycloneDX 1.5). Nothing is fetched that a build does not.
    scripts/third_party.py TARGET FOLDER    writes THIRD-PARTY.txt and throng.cdx.json
"""
import json
import pathlib
import re
import subprocess
import sys
import tomllib

LICENCE = re.compile(r"(un)?licen[cs]e|copying|notice|copyright", re.IGNORECASE)
SOURCE = re.compile(r"\.(rs|py|c|h|cc|go|pl|sh|cmake|json|toml|html)$", re.IGNORECASE)
TREE = "cargo tree --locked -p throng-cli -e normal,no-proc-macro --prefix none"


def said(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(tree):
    """The crates of `cargo tree`: (name, version) of each line `NAME vVERSION …`.

    >>> sorted(linked("a v1.0.0 (/folder)\\n\\nb v0.2.0\\nb v0.2.0 (*)\\n"))
    [('a', '1.0.0'), ('b', '0.2.0')]
    """
    lines = (line.split() for line in tree.splitlines() if line.strip())
    return {(words[0], words[1].removeprefix("v")) for words in lines}


def expression(package):
    """The licence as SPDX writes it; `/` is how crates wrote OR before.

    >>> expression({"license": "MIT/Apache-2.0"}), expression({"license": None})
    ('MIT OR Apache-2.0', 'LicenseRef-file')
    """
    return (package["license"] or "LicenseRef-file").replace("/", " OR ")


def texts(package):
    """The licences in a crate's folder, also of what it has from others, two folders down."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = {path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern)}
    named = (path for path in files if LICENCE.match(path.name) and not SOURCE.search(path.name))
    for path in sorted(path for path in named if path.is_file()):
        yield path.read_text(errors="replace").strip()


def licences(packages):
    """One text, of whom it is, then the next; at the end who ships none, with its authors."""
    users, without = {}, []
    for package in packages:
        name = f"{package['name']} {package['version']} ({expression(package)})"
        found = list(texts(package))
        for text in found:
            users.setdefault(text, []).append(name)
        if not found:
            authors = ", ".join(package["authors"]) or package["repository"] or "no authors named"
            without.append(f"{name}: {authors}")
    rule = "-" * 80 + "\n"
    parts = ["throng is linked with these crates, under their licences.\n"]
    parts += ["\n".join(dict.fromkeys(names)) + f"\n\n{text}\n" for text, names in users.items()]
    if without:
        heading = "Without a text of their own; others above have the same licence:"
        parts.append("\n".join([heading, *without]) + "\n")
    return rule.join(parts), without


def bill(packages, nodes, checksums, version):
    """The bill of materials. It has no date: the same build gives the same bytes."""
    references = {p["id"]: f"pkg:cargo/{p['name']}@{p['version']}" for p in packages}

    def component(package):
        entry = {
            "type": "library",
            "bom-ref": references[package["id"]],
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": expression(package)}],
            "purl": references[package["id"]],
        }
        checksum = checksums.get((package["name"], package["version"]))
        return entry | ({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {})

    dependencies = [
        {
            "ref": references[node["id"]],
            "dependsOn": sorted({references[d] for d in node["dependencies"] if d in references}),
        }
        for node in nodes
        if node["id"] in references
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "throng", "version": version},
        },
        "components": [component(package) for package in packages],
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }


def main(target, folder):
    wanted = linked(said([*TREE.split(), "--target", target]))
    resolve = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", target]
    metadata = json.loads(said(resolve))
    known = {(p["name"], p["version"]): p for p in metadata["packages"]}
    packages = [known[key] for key in sorted(wanted)]
    own = next(package for package in packages if package["name"] == "throng-cli")
    others = [package for package in packages if package["source"]]
    with open("Cargo.lock", "rb") as lock:
        locked = tomllib.load(lock)["package"]
    checksums = {(p["name"], p["version"]): p["checksum"] for p in locked if "checksum" in p}
    text, without = licences(others)
    (folder / "THIRD-PARTY.txt").write_text(text)
    made = bill(packages, metadata["resolve"]["nodes"], checksums, own["version"])
    (folder / "throng.cdx.json").write_text(json.dumps(made, indent=1) + "\n")
    print(f"{len(others)} crates of others, {len(without)} of them without a text of their own")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
