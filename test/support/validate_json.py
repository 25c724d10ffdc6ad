"""Validates JSON files against one of the project's schemas: a line "ok" or "FILE: PATH: MESSAGE" each.

Usage: validate_json.py SCHEMA FILE...   (Debian's python3-jsonschema; files may be gzipped)
"""
import gzip
import json
import pathlib
import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # RefResolver, from jsonschema 4.18 on
    from jsonschema import Draft202012Validator, RefResolver, exceptions

schema_path = pathlib.Path(sys.argv[1]).resolve()
schema = json.loads(schema_path.read_text())
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema, resolver=RefResolver(schema_path.as_uri(), schema))
for name in sys.argv[2:]:
    raw = pathlib.Path(name).read_bytes()
    error = exceptions.best_match(
        validator.iter_errors(json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)))
    print("ok" if error is None else f"{name}: {error.json_path}: {error.message[:200]}")
