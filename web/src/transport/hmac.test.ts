import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { hmacSha256, sha256 } from "./hmac";

const bytes = (length: number) => Uint8Array.from({ length }, (_, index) => (index * 37 + length) % 256);

function hex(found: Uint8Array): string {
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

test.each([0, 1, 3, 54, 55, 56, 63, 64, 65, 119, 120, 1000])("the hash of %i bytes is the standard's", (length) => {
  expect(hex(sha256(bytes(length)))).toBe(createHash("sha256").update(bytes(length)).digest("hex"));
});

test.each([
  [0, 0],
  [43, 120],
  [64, 64],
  [65, 1],
  [200, 300],
])("the keyed hash with %i bytes of key over %i bytes is the standard's", (key, text) => {
  expect(hex(hmacSha256(bytes(key), bytes(text)))).toBe(createHmac("sha256", bytes(key)).update(bytes(text)).digest("hex"));
});
