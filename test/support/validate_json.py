"""Validates JSON files against one of the project's schemas: a line "ok" or "FILE: PATH: MESSAGE" each.

Usage: validate_json.py SCHEMA FILE...   (Debian's python3-jsonschema, or a newer one; files may be gzipped)
"""
import gzip
import json
import pathlib
import sys

from jsonschema import Draft202012Validator, exceptions

schema_path = pathlib.Path(sys.argv[1]).resolve()
schema = json.loads(schema_path.read_text())
Draft202012Validator.check_schema(schema)
try:
    import referencing  # from jsonschema 4.18 on, whose RefResolver loses its place behind a whole file
    others = [json.loads(path.read_text()) for path in schema_path.parent.glob("*.schema.json")]
    registry = referencing.Registry().with_resources(
        (other["$id"], referencing.Resource.from_contents(other)) for other in others)
    validator = Draft202012Validator(schema, registry=registry)
except ImportError:
    from jsonschema import RefResolver
    validator = Draft202012Validator(schema, resolver=RefResolver(schema_path.as_uri(), schema))
for name in sys.argv[2:]:
    raw = pathlib.Path(name).read_bytes()
    error = exceptions.best_match(
        validator.iter_errors(json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)))
    print("ok" if error is None else f"{name}: {error.json_path}: {error.message[:200]}")
