import { expect, test } from "vitest";
import { ApiError } from "./api";
import { type Advance, LaterApi, linesOf } from "./api.later";

function streamOf(...pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

async function all(stream: ReadableStream<Uint8Array>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(stream)) lines.push(line);
  return lines;
}

test("lines of a stream are whole however they were cut, also within a letter", async () => {
  const bytes = new TextEncoder().encode("grün\n\nzwölf\nende");
  for (let at = 0; at <= bytes.length; at++) {
    expect(await all(streamOf(bytes.slice(0, at), bytes.slice(at)))).toEqual(["grün", "zwölf", "ende"]);
  }
});

test("an import tells of every file, and asks for a dry run when it is one", async () => {
  const asked: string[] = [];
  const lines = '{"done":0,"of":1}\n{"done":1,"of":1,"problem":"no session"}\n';
  const fetcher: typeof fetch = (url) => {
    asked.push(String(url));
    return Promise.resolve(new Response(lines));
  };
  const api = new LaterApi(fetcher, { client: "here" });
  const told: Advance[] = [];
  await api.importHistory("codex", { dryRun: true, signal: new AbortController().signal }, (advance) => told.push(advance));
  await api.importHistory("codex", { dryRun: false, signal: new AbortController().signal }, () => undefined);
  expect(told.map(({ done, of }) => [done, of])).toEqual([
    [0, 1],
    [1, 1],
  ]);
  expect(asked).toEqual(["/api/import/codex?dry_run=true", "/api/import/codex"]);
});

test("an import that is refused says why", async () => {
  const refusal = new Response(JSON.stringify({ code: "not_found", message: "No history of “x” can be imported." }), { status: 404 });
  const api = new LaterApi(() => Promise.resolve(refusal), { client: "here" });
  const call = api.importHistory("x", { dryRun: true, signal: new AbortController().signal }, () => undefined);
  await expect(call).rejects.toMatchObject({ status: 404, message: "No history of “x” can be imported." });
  await expect(call).rejects.toBeInstanceOf(ApiError);
});
