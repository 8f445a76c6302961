"""Links between files of the repository lead somewhere; Sphinx checks the links between pages of the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)(?:#[^)\s]*)?\)")
PAGES = [path.relative_to(ROOT) for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])]


def lost(page):
    """Return the targets of a page's relative links that do not exist."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    targets = (
        target for target in LINK.findall(text) if not target.startswith("gallery/") and "/gallery/" not in target
    )
    return [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_relative_links_lead_to_files(page):
    assert lost(page) == []


def test_a_lost_link_is_found(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(
        "[here](page.md), [there](gone.md#part), `[code](no.md)`\n\n```\n[block](no.md)\n```\n"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert lost("page.md") == ["gone.md"]


def test_readme_is_short():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 180
    assert len(text.split()) <= 1500
