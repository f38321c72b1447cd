import { expect, test } from "vitest";
import { list, said, shortPaths } from "./sentences";

test("a sentence of the server is shown without a programmer's quotes", () => {
  expect(said("It stands in the file `token` of `~/x y`.")).toBe("It stands in the file “token” of “~/x y”.");
  expect(said("A lone ` stays.")).toBe("A lone ` stays.");
});

test("a command or a sentence is shown without the long way to a program", () => {
  expect(shortPaths("/home/ada/.local/bin/codex login")).toBe("~/.local/bin/codex login");
  expect(shortPaths("Nobody is logged in. Run /Users/ada/.local/bin/codex login")).toBe("Nobody is logged in. Run ~/.local/bin/codex login");
  expect(shortPaths("Run `/Users/ada/.local/bin/codex`.")).toBe("Run `~/.local/bin/codex`.");
  expect(shortPaths("/srv/tools/node_modules/@openai/codex/vendor/x86_64/codex/codex login")).toBe("…/codex/codex login");
  expect(shortPaths("npm install -g @earendil-works/pi, then /login")).toBe("npm install -g @earendil-works/pi, then /login");
});

test("several things are listed as in a sentence", () => {
  expect([list("a"), list("a", false, "b"), list("a", "b", "c"), list(false)]).toEqual(["a", "a and b", "a, b and c", ""]);
});
