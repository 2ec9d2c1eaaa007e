"""Checks SPDX documents with the validator of the SPDX project: one line for each mistake."""

import sys

from spdx_tools.spdx.parser.json import json_parser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

for path in sys.argv[1:]:
    document = json_parser.parse_from_file(path)
    for message in validate_full_spdx_document(document, "SPDX-2.3"):
        print(message.validation_message)
    for package in document.packages:
        if package.version == "":
            print(f"{package.spdx_id} has an empty version")
