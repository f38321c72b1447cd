/**
 * What an answer cites, as its provider tells it, made into sources to be listed: each once, in the order they are first cited.
 * Pure. Every provider has its own fields, and an imported history may hold any: what has no name is left out.
 */

export interface Source {
  readonly title: string;
  /** Null: nothing to open, such as a page of a document that was sent along. */
  readonly url: string | null;
  /** The words that were cited. */
  readonly quotes: readonly string[];
}

export function sourcesOf(citations: readonly unknown[]): Source[] {
  const found = new Map<string, Source>();
  for (const citation of citations) {
    const source = sourceOf(citation);
    if (source === null) continue;
    const key = source.url ?? source.title;
    const known = found.get(key);
    found.set(key, known === undefined ? source : { ...known, quotes: [...new Set([...known.quotes, ...source.quotes])] });
  }
  return [...found.values()];
}

function sourceOf(citation: unknown): Source | null {
  if (citation === null || typeof citation !== "object") return null;
  const outer = citation as Record<string, unknown>;
  // The OpenAI shape keeps it one level further down.
  const inner = outer["url_citation"];
  const fields = inner !== null && typeof inner === "object" ? (inner as Record<string, unknown>) : outer;
  const address = wordsIn(fields, "url", "source");
  const title = wordsIn(fields, "title", "document_title") ?? address;
  if (title === null) return null;
  const quote = wordsIn(fields, "cited_text");
  return { title, url: address !== null && /^https?:\/\//i.test(address) ? address : null, quotes: quote === null ? [] : [quote.trim()] };
}

function wordsIn(fields: Record<string, unknown>, ...names: readonly string[]): string | null {
  const value = names.map((name) => fields[name]).find((known) => typeof known === "string" && known.trim() !== "");
  return typeof value === "string" ? value : null;
}
