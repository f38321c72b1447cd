// Writes the table of hidden characters, as the page defines them by the properties of Unicode (web/src/model/visible.ts): for
// Python as a module, and for the tests of both languages as a golden file.
//
//   node scripts/hidden_characters.mjs

import { readFileSync, writeFileSync } from "node:fs";

const page = readFileSync(new URL("../web/src/model/visible.ts", import.meta.url), "utf8");
const hidden = new RegExp(/const HIDDEN =\s+\/(.+)\/gu;/.exec(page)[1], "u");

const ranges = [];
for (let code = 0; code <= 0x10ffff; code += 1) {
  if (!hidden.test(String.fromCodePoint(code))) continue;
  const last = ranges.at(-1);
  if (last && last[1] === code - 1) last[1] = code;
  else ranges.push([code, code]);
}

const hex = (code) => `0x${code.toString(16).toUpperCase().padStart(4, "0")}`;
const rows = ranges.map(([from, to]) => `    (${hex(from)}, ${hex(to)}),\n`).join("");
writeFileSync(
  new URL("../src/palaver/core/text/hidden_characters.py", import.meta.url),
  `"""Code points that show nothing, move what stands beside them, or pass for a plain space: a table generated from Unicode.

Made by \`node scripts/hidden_characters.mjs\` from Unicode ${process.versions.unicode}; not edited by hand. Read by \`visible\` alone.
"""

RANGES: tuple[tuple[int, int], ...] = (
${rows})
"""First and last of each range, in order."""
`,
);
writeFileSync(new URL("../tests/golden/texts/hidden_characters.json", import.meta.url), `${JSON.stringify(ranges)}\n`);
