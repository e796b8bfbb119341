"""The reference of the API as a page: what OpenAPI says, laid out here, since its usual pages load scripts."""

import json
import shlex
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from emhrnn.serve.rendering import rendered

reference = APIRouter(include_in_schema=False)


@reference.get("/docs")
async def docs(request: Request) -> Response:
    schema, base = request.app.openapi(), str(request.base_url).rstrip("/")
    return rendered(request, "docs.html", operations=_operations(schema, base), schemas=schema["components"]["schemas"])


def _operations(schema: dict[str, Any], base: str) -> list[dict[str, Any]]:
    found = []
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            answers = {code: answer["description"] for code, answer in told["responses"].items()}
            found.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "summary": told.get("summary", ""),
                    "takes": _name(body),
                    "gives": _name(
                        told["responses"]["200"].get("content", {}).get("application/json", {}).get("schema")
                    ),
                    "answers": answers,
                    "call": _call(method, shlex.quote(base + path), schema, body),
                }
            )
    return found


def _name(schema: dict[str, Any] | None) -> str:
    if not schema:
        return ""
    if "items" in schema:
        return f"list of {_name(schema['items'])}"
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _call(method: str, address: str, schema: dict[str, Any], body: dict[str, Any] | None) -> str:
    if not body:
        return f"curl {address}"
    examples = schema["components"]["schemas"][_name(body)].get("examples", [{"text": "The soup was not bad at all."}])
    return (
        f"curl -X {method.upper()} {address} -H 'content-type: application/json' \\\n  -d '{json.dumps(examples[0])}'"
    )
