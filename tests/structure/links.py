# SPDX-License-Identifier: Apache-2.0
"""Checks that relative links of pages lead to files, and to their headings: links.py ROOT"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(\s*([^)\s]+)\)")


def anchors(page):
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ +(.*)$", BLOCK.sub("", page.read_text()), re.M)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def main(root):
    tops = [p for p in sorted(root.iterdir()) if not re.match(r"build|dist|\.", p.name)]
    pages = [p for top in tops for p in ([top] if top.is_file() else sorted(top.rglob("*.md")))
             if p.suffix == ".md"]
    errors, links = [], 0
    for page in pages:
        for link in LINK.findall(BLOCK.sub("", page.read_text())):
            if re.match(r"\w+:", link):
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                errors.append(f"{page.relative_to(root)}: {link} leads nowhere")
    print("\n".join(errors) if errors else f"{links} links of {len(pages)} pages lead somewhere")
    return 1 if errors or not links else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
