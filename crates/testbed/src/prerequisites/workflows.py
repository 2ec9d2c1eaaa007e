"""Checks a file of a CI system against the schema of its kind, and prints the file as JSON."""

import importlib.util, json, pathlib, sys

import jsonschema
from ruamel.yaml import YAML

kind, path = sys.argv[1:]
# The package has the schemas. Its code is not imported, because it needs more packages.
package = pathlib.Path(importlib.util.find_spec("check_jsonschema").submodule_search_locations[0])
schema = json.loads((package / f"builtin_schemas/vendor/{kind}.json").read_text("utf-8"))
# YAML 1.2, as GitHub reads it: `on` is a string.
with open(path, encoding="utf-8") as file:
    document = YAML(typ="safe", pure=True).load(file)
validator = jsonschema.validators.validator_for(schema)(schema)
mistakes = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
if mistakes:
    sys.exit("\n".join(mistakes))
json.dump(document, sys.stdout)
