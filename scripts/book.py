#!/usr/bin/env python3
"""The pages of the book, in the order of docs/README.md, and a check of the links of the book.
    scripts/book.py pages FOLDER     writes the sources of mdBook: pages, what they show, SUMMARY.md
    scripts/book.py links FOLDER     says which links of these HTML files lead nowhere
The folders of the repository are kept, so that links between pages stay as they are.
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

FRONT, INDEX = "README.md", "docs/README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)


def outside_code(text, change):
    """Changes what is no code block.

    >>> outside_code("a\\n```\\na\\n```\\na", lambda part: part.replace("a", "b"))
    'b\\n```\\na\\n```\\nb'
    """
    parts = FENCED.split(text)
    return "".join(part if FENCED.match(part) else change(part) for part in parts)


def place(page, link):
    """The file that a link of a page leads to, from the root of the repository; None: elsewhere.

    >>> place("docs/README.md", "../ring/README.md#c"), place("README.md", "https://a/b.md")
    ('ring/README.md', None)
    """
    path = link.partition("#")[0]
    if "://" in link or not path:
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), path))


def links(page):
    """What a page links to, in its order."""
    found = []
    text = pathlib.Path(page).read_text()
    outside_code(text, lambda part: found.extend(LINK.findall(part)) or part)
    return [target for target in (place(page, link) for link in found) if target]


def in_book(path):
    """The name of a page in the book: mdBook makes `index.html` of `index.md`.

    >>> in_book("docs/README.md"), in_book("docs/find.md")
    ('docs/index.md', 'docs/find.md')
    """
    return re.sub(r"README\.md$", "index.md", path)


def rewritten(page, text):
    """The text of a page in the book. A folder has no page: its name stays, without the link."""

    def change(part):
        def link(match):
            target = place(page, match[2])
            if target and os.path.isdir(target):
                return match[1]
            path, mark, heading = match[2].partition("#")
            return f"[{match[1]}]({in_book(path) if target else path}{mark}{heading})"

        return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, part)

    return outside_code(text, change)


def title(page):
    """The first heading, without marks."""
    heading = re.search(r"^# (.+)$", pathlib.Path(page).read_text(), re.MULTILINE)
    return re.sub(r"[`*_\[\]]", "", heading[1]) if heading else page


def summary(index):
    """SUMMARY.md, and all pages in its order: a part for each heading of the index, a page for each
    row of its tables, below a README its own rows; what else they lead to is last."""
    seen = [FRONT, index]
    lines = ["# Summary"] + [f"\n[{title(page)}]({in_book(page)})" for page in seen]

    def add(page, depth):
        if not page.endswith(".md") or page in seen:
            return
        seen.append(page)
        lines.append(f"{'  ' * depth}- [{title(page)}]({in_book(page)})")
        if page.endswith("README.md"):
            rows(page, depth + 1)

    def rows(page, depth):
        for line in pathlib.Path(page).read_text().splitlines():
            if line.startswith("## "):
                lines.extend([f"\n# {line[3:]}"] if depth == 0 else [])
            for link in LINK.findall(line.split("|")[1]) if line.startswith("| [") else []:
                add(place(page, link) or "", depth)

    rows(index, 0)
    lines.append("\n# Beside")
    for page in seen:
        for target in links(page):
            add(target, 0)
    return lines, seen


def write_pages(folder):
    lines, pages = summary(INDEX)
    listed = subprocess.run(["git", "ls-files", "docs/*.md"], check=True, capture_output=True)
    lost = [page for page in listed.stdout.decode().split() if page not in pages]
    if lost:
        sys.exit(f"no page leads to {', '.join(lost)}: add a row to {INDEX}")
    for page in pages:
        target = folder / in_book(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten(page, pathlib.Path(page).read_text()))
        for shown in links(page):
            if os.path.isfile(shown) and not shown.endswith(".md"):
                (folder / shown).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(shown, folder / shown)
    (folder / "SUMMARY.md").write_text("\n".join(lines) + "\n")
    print(f"{len(pages)} pages")


class Names(html.parser.HTMLParser):
    """The identifiers of a file, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value and ":" not in value.split("/")[0]:
                self.targets.append(value)


def check_links(folder):
    files = {path: Names(path.read_text()) for path in folder.rglob("*.html")}
    count, wrong = 0, []
    # These repeat the others, from other places.
    for path in sorted(set(files) - {folder / "print.html", folder / "404.html"}):
        for target in files[path].targets:
            count += 1
            name, _, heading = urllib.parse.unquote(target).partition("#")
            file = pathlib.Path(os.path.normpath(path.parent / name)) if name else path
            names = files[file].ids if file in files else set()
            if not file.is_file() or heading and heading not in names:
                wrong.append(f"{path}: {target}")
    print(f"{count} links")
    if wrong:
        sys.exit("these lead nowhere:\n" + "\n".join(wrong))


if __name__ == "__main__":
    made = {"pages": write_pages, "links": check_links}
    if len(sys.argv) != 3 or sys.argv[1] not in made:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    made[sys.argv[1]](pathlib.Path(sys.argv[2]))
