"""Prints the samples of a document in Prometheus' text format, as JSON."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8", newline="") as document:
    text = document.read()
# The parser accepts a last line without an end, which the format does not allow.
if text and not text.endswith("\n"):
    sys.exit("the last line has no end")
samples = [
    {"type": family.type, "name": sample.name, "labels": sample.labels, "value": sample.value}
    for family in text_string_to_metric_families(text)
    for sample in family.samples
]
json.dump(samples, sys.stdout)
