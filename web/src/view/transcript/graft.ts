/**
 * Brings an element to new HTML and keeps the nodes that it begins with. Text that streams grows at its end: so a browser
 * lays out and draws only that, and what a reader has selected stays selected.
 *
 * Called by Markdown with HTML the model made, which is safe by construction. The result equals setting innerHTML.
 */

const scratch = document.createElement("template");

export function graft(element: Element, html: string, before: string): void {
  if (before === "" || element.childNodes.length === 0) element.innerHTML = html;
  else if (!lengthen(element, html, before)) {
    scratch.innerHTML = html;
    adopt(element, scratch.content);
  }
}

/** More plain words at the end and nothing else, which is nearly always: no HTML has to be parsed. */
function lengthen(element: Element, html: string, before: string): boolean {
  const closers = /(?:<\/\w+>\n?)+$/.exec(before)?.[0] ?? "";
  const end = before.length - closers.length;
  if (closers === "" || before[end - 1] === ">" || !html.endsWith(closers)) return false;
  const words = html.slice(end, html.length - closers.length);
  if (/[<>&]/.test(words) || !html.startsWith(before.slice(0, end))) return false;
  let last: Element | null = element;
  for (let open = closers.split("</").length - 1; open > 0; open--) last = last?.lastElementChild ?? null;
  const text = last?.lastChild;
  if (!(text instanceof Text)) return false;
  text.appendData(words);
  return true;
}

/** Takes over what is new from `fresh`, from the first child that differs. */
function adopt(old: Node, fresh: Node): void {
  let at = 0;
  while (at < old.childNodes.length && old.childNodes[at]?.isEqualNode(fresh.childNodes[at] ?? null)) at++;
  const theirs = [...fresh.childNodes].slice(at);
  const [mine, ...rest] = [...old.childNodes].slice(at);
  const [first] = theirs;
  if (mine && first && isSameKind(mine, first)) {
    if (mine instanceof Text) rewrite(mine, (first as Text).data);
    else adopt(mine, first);
    theirs.shift();
  } else mine?.remove();
  for (const node of rest) node.remove();
  (old as ParentNode & Node).append(...theirs);
}

/** From where it differs: a selection before that stays. */
function rewrite(text: Text, data: string): void {
  const before = text.data;
  let same = 0;
  while (same < data.length && before[same] === data[same]) same++;
  text.replaceData(same, before.length - same, data.slice(same));
}

/** The same element with other content, or both text. */
function isSameKind(one: Node, other: Node): boolean {
  if (one instanceof Text) return other instanceof Text;
  return one.cloneNode(false).isEqualNode(other.cloneNode(false));
}
