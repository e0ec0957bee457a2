"""Writes the schemas by which the tests judge every frame that Farebox writes (protocol/tests/fixtures/schemas).

Usage: schemas.py OPENAPI_JSON FOLDER, with the packages anthropic and openresponses-types installed. OPENAPI_JSON is openapi.json of
github.com/openai/openai-openapi. Only what answers need is kept, without descriptions and examples. In the vendors' own schemas every
object that is not composed from others refuses members that it does not name; Open Responses leaves room for those of vendors.
"""

import json
import pathlib
import sys

import anthropic.types
import openresponses_types.types as open_responses
from pydantic import BaseModel, TypeAdapter

PLACE = "#/components/schemas/{model}"
SILENT = {"description", "example", "examples", "title", "default", "deprecated", "externalDocs", "discriminator"}


def bare(value):
    """The schema without words, as far as validation is concerned the same."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, member in value.items():
        if name == "properties":
            out[name] = {key: bare(item) for key, item in member.items()}
        elif name not in SILENT and not name.startswith("x-"):
            out[name] = bare(member)
    return out


def names(value):
    """The schemas that a schema refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[-1]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from names(item)


def needed(schemas, roots):
    out, waiting = {}, list(roots)
    while waiting:
        name = waiting.pop()
        if name not in out:
            out[name] = bare(schemas[name])
            waiting.extend(names(out[name]))
    return out


def composed(value, inside=False):
    """The names of schemas that stand in an allOf, whose members another schema adds to."""
    if isinstance(value, dict):
        if inside and "$ref" in value:
            yield value["$ref"].rsplit("/", 1)[-1]
        for name, member in value.items():
            yield from composed(member, inside or name == "allOf")
    elif isinstance(value, list):
        for item in value:
            yield from composed(item, inside)


def strict(value, inside=False):
    """Refuses unnamed members."""
    if isinstance(value, dict):
        if "properties" in value and not inside and "allOf" not in value and not isinstance(value.get("additionalProperties"), dict):
            value["additionalProperties"] = False
        for name, member in value.items():
            strict(member, name == "allOf" or (inside and name in ("anyOf", "oneOf")))
    elif isinstance(value, list):
        for item in value:
            strict(item, inside)


def write(folder, name, schemas, vendors=True):
    open_ones = {part for schema in schemas.values() for part in composed(schema)}
    for schema, value in schemas.items() if vendors else ():
        strict(value, schema in open_ones)
    (folder / name).write_text(json.dumps({"components": {"schemas": schemas}}, indent=1, sort_keys=True) + "\n")


def of_types(types):
    schemas = {}
    for name, kind in types.items():
        schema = TypeAdapter(kind).json_schema(ref_template=PLACE)
        schemas.update(schema.pop("$defs", {}))
        schemas[name] = schema
    return needed(schemas, types)


folder = pathlib.Path(sys.argv[2])
openai = json.loads(pathlib.Path(sys.argv[1]).read_text())["components"]["schemas"]
roots = ["CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", "Response", "ResponseStreamEvent"]
write(folder, "openai.json", needed(openai, roots))
write(folder, "anthropic.json", of_types({"Message": anthropic.types.Message, "Event": anthropic.types.RawMessageStreamEvent}))
events = {name: kind for name, kind in vars(open_responses).items()
          if name.endswith("StreamingEvent") and isinstance(kind, type) and issubclass(kind, BaseModel)}
schemas = of_types({"Response": open_responses.ResponseResource, **events})
schemas["Event"] = {"oneOf": [{"$ref": PLACE.format(model=name)} for name in sorted(events)]}
write(folder, "open-responses.json", schemas, vendors=False)
