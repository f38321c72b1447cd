/** Text as it stands, for when the renderer could not be loaded: the page stays readable. */

import type { MarkdownPart } from "./markdown";
import type { TextBook } from "./snapshot";

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export class PlainBook implements TextBook {
  render(_key: string, text: string, _done: boolean): readonly MarkdownPart[] {
    const escaped = text.replace(/[&<>"]/g, (sign) => ESCAPES[sign] ?? "");
    return [{ kind: "html", key: 0, html: `<p class="md-plain">${escaped}</p>` }];
  }
}
