import { expect, test } from "vitest";
import { isAddress, isLoopback } from "./address";

test("addresses of the machine itself are told from others", () => {
  const here = ["http://127.0.0.1:8420", "http://localhost:8420/", "http://[::1]:8420", "http://127.8.8.8"];
  expect(here.map(isLoopback)).toEqual(here.map(() => true));
  const elsewhere = ["https://box.example", "http://192.168.1.5:8420", "http://localhost.example"];
  expect(elsewhere.map(isLoopback)).toEqual(elsewhere.map(() => false));
});

test("what is no address is none", () => {
  expect(["", "box", "ftp://box", "https://", "http:// box", "javascript:alert(1)"].map(isAddress)).toEqual(Array(6).fill(false));
  expect(isAddress("https://box.example/")).toBe(true);
});
