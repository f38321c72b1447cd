import { expect, test } from "vitest";
import { ApiError, HttpApi } from "./api";

interface Call {
  url: string;
  method: string | undefined;
  body: unknown;
  credentials: string | undefined;
  headers: unknown;
}

function answering(status: number, body: string): { api: HttpApi; calls: Call[] } {
  const calls: Call[] = [];
  const fetcher = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { method, credentials, headers } = init;
    const body_ = typeof init.body === "string" ? JSON.parse(init.body) : init.body;
    calls.push({ url: String(url), method, credentials, headers, body: body_ });
    return new Response(status === 204 ? null : body, { status });
  };
  return { api: new HttpApi(fetcher as typeof fetch, { client: "laptop" }), calls };
}

test("calls go to their own address with the cookie and a JSON body", async () => {
  const { api, calls } = answering(200, '{"items":[],"next_cursor":null}');
  await api.conversations({ limit: 20, cursor: null, query: "a b&c" });
  await api.messages("x/y", 7, 100);
  await api.search({ q: "ö", conversation: "c" });
  await api.command("c", { type: "interrupt", client_request_id: "i" });
  expect(calls).toMatchObject([
    { method: "GET", url: "/api/conversations?limit=20&query=a+b%26c" },
    { method: "GET", url: "/api/conversations/x%2Fy/messages?before=7&limit=100" },
    { method: "GET", url: "/api/search?q=%C3%B6&conversation=c" },
    { method: "POST", url: "/api/conversations/c/commands", body: { type: "interrupt", client_request_id: "i" } },
  ]);
});

test("commands and uploads carry the name of their browser, so that it knows its own events again", async () => {
  const { api, calls } = answering(200, "{}");
  await api.command("c", { type: "interrupt" });
  await api.upload(new Blob(["x"]), "x.png");
  expect(calls).toMatchObject([
    { headers: { "palaver-client": "laptop", "content-type": "application/json" } },
    { headers: { "palaver-client": "laptop" } },
  ]);
});

test("a refusal carries the server's own words", async () => {
  const { api } = answering(409, '{"code":"conflict","message":"The agent is working.","details":{"turn":"t"}}');
  const error = await api.command("c", { type: "regenerate" }).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 409, retryable: false, error: { code: "conflict", details: { turn: "t" } } });
});

test("401 is signed out", async () => {
  const { api } = answering(401, '{"code":"unauthorized","message":"Sign in."}');
  await expect(api.session()).rejects.toMatchObject({ signedOut: true });
});

test("a gateway's page is an error that may pass; a page of ours that broke is not", async () => {
  await expect(answering(502, "<html>").api.agents()).rejects.toMatchObject({ status: 502, retryable: true });
  await expect(answering(500, "oops").api.agents()).rejects.toMatchObject({ status: 500, retryable: false });
});

test("no answer at all may be tried again", async () => {
  const fetcher = (async () => Promise.reject(new TypeError("fetch failed"))) as typeof fetch;
  const api = new HttpApi(fetcher, { client: "laptop" });
  await expect(api.requests()).rejects.toMatchObject({ status: 0, retryable: true, error: { code: "unreachable" } });
});

test("an answer without a body is one", async () => {
  await expect(answering(204, "").api.signOut()).resolves.toBeUndefined();
});

test("a file goes out as a form", async () => {
  const { api, calls } = answering(201, '{"id":"b","url":"/api/blobs/b","mime":"text/plain","size":2}');
  await expect(api.upload(new Blob(["hi"]), "a.txt")).resolves.toMatchObject({ id: "b" });
  const form = calls[0]?.body as FormData;
  expect((form.get("file") as File).name).toBe("a.txt");
});
