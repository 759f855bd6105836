"""A flame graph's page, read back."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The texts of a page by their elements, and everything that could lead out of it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.leads = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.leads += [value for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data):
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        key = attributes.get("id") or tag
        self.texts[key] = self.texts.get(key, "") + data
