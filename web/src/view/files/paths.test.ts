import { expect, it } from "vitest";
import { above, inside, mentioned, nameOf } from "./paths";

it("a file is mentioned after what was written, and stays one name", () => {
  expect(mentioned("", "src/a.py")).toBe("@src/a.py ");
  expect(mentioned("Look at", "src/a.py")).toBe("Look at @src/a.py ");
  expect(mentioned("Look at ", "my notes.md")).toBe('Look at @"my notes.md" ');
});

it("folders are walked up to the top and no further", () => {
  expect([above("/home/ada/tides"), above("/home"), above("/")]).toEqual(["/home/ada", "/", null]);
  expect([inside("/", "srv"), inside("/srv", "tides")]).toEqual(["/srv", "/srv/tides"]);
  expect([nameOf("/srv/tides/"), nameOf("/")]).toEqual(["tides", "/"]);
});
