import { expect, test } from "vitest";
import { nameOf } from "./export";

test("a file has the server's name, and one of its own where that is missing or odd", () => {
  expect(nameOf('attachment; filename="a-walk.md"', "c1", "markdown")).toBe("a-walk.md");
  expect(nameOf(null, "c1", "html")).toBe("c1.html");
  expect(nameOf('attachment; filename="../x"', "c1", "trajectory")).toBe("c1.json");
});
