#!/bin/sh
# Fails when a generated file (JSON Schema, TypeScript types, protocol pages, the command reference) differs from what the
# code says now.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python -m palaver.cli.support.reference --check
exec .venv/bin/python -m palaver.schema.generate --check
