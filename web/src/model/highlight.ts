/** The pure part of the highlighting worker: code and its language to HTML. Only the worker imports highlight.js. */

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

export interface HighlightJob {
  readonly id: number;
  readonly code: string;
  readonly language: string;
}

export interface Highlighted {
  readonly id: number;
  /** Escaped HTML with `hljs-*` spans, or null when the language is not known or the code too long: show it plain. */
  readonly html: string | null;
}

/** About 3,000 lines: a tenth of a second. Nobody reads colours in more. */
const LONGEST_CHARS = 100_000;

const LANGUAGES = {
  bash,
  c,
  cpp,
  css,
  diff,
  go,
  ini,
  java,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

export function highlight(job: HighlightJob): Highlighted {
  const { id, code, language } = job;
  if (code.length > LONGEST_CHARS || hljs.getLanguage(language) === undefined) return { id, html: null };
  return { id, html: hljs.highlight(code, { language, ignoreIllegals: true }).value };
}
