/** A conversation as a file, fetched with its progress. Called by the export dialog. Must never retry: whoever calls decides. */

import { ApiError, asApiError, asWireError, parsed } from "./api";
import { signedFetch } from "./pagekey";

export const FORMATS = ["html", "markdown", "jsonl", "trajectory"] as const;

export type Format = (typeof FORMATS)[number];

const ENDINGS: Record<Format, string> = { html: "html", markdown: "md", jsonl: "jsonl", trajectory: "json" };

export async function fetchExport(conversation: string, format: Format, signal: AbortSignal, tell: (bytes: number) => void): Promise<File> {
  try {
    const response = await signedFetch(`/api/conversations/${encodeURIComponent(conversation)}/export?format=${format}`, {
      cache: "no-store",
      signal,
    });
    if (!response.ok) throw new ApiError(response.status, asWireError(response.status, parsed(await response.text())));
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    const reader = response.body?.getReader();
    let size = 0;
    for (let piece = await reader?.read(); piece !== undefined && !piece.done; piece = await reader?.read()) {
      pieces.push(piece.value);
      size += piece.value.length;
      tell(size);
    }
    const type = response.headers.get("content-type") ?? "application/octet-stream";
    return new File(pieces, nameOf(response.headers.get("content-disposition"), conversation, format), { type });
  } catch (cause) {
    throw asApiError(cause);
  }
}

export function nameOf(disposition: string | null, conversation: string, format: Format): string {
  return /filename="([\w.-]+)"/.exec(disposition ?? "")?.[1] ?? `${conversation}.${ENDINGS[format]}`;
}
