"""Reads a Markdown document as GitHub would: prints the HTML's tags, and its text in code and outside."""

import json, sys
from html.parser import HTMLParser
from markdown_it import MarkdownIt


class Reader(HTMLParser):
    tags, text, code, depth = set(), "", "", 0

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.depth += tag == "code"

    def handle_endtag(self, tag):
        self.depth -= tag == "code"

    def handle_data(self, data):
        if self.depth:
            self.code += data
        else:
            self.text += data


reader = Reader()
reader.feed(MarkdownIt("gfm-like").render(open(sys.argv[1], encoding="utf-8").read()))
reader.close()
json.dump({"tags": sorted(reader.tags), "text": reader.text, "code": reader.code}, sys.stdout)
