#!/bin/sh
# Fails when a generated file (JSON Schema, TypeScript types, protocol pages) differs from what the schema says now.
set -eu
cd "$(dirname "$0")/.."

if [ ! -e src/palaver/schema/generate.py ]; then exit 0; fi
echo "Checking generated files …"
exec .venv/bin/python -m palaver.schema.generate --check
