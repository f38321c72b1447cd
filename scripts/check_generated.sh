#!/bin/sh
# Fails when a generated file (JSON Schema, TypeScript types, protocol pages) differs from what the schema says now.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/python -m palaver.schema.generate --check
