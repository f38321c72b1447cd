/**
 * Brings an element to new HTML and keeps the nodes that it begins with. Text that streams grows at its end: so a browser
 * lays out and draws only that, and what a reader has selected stays selected.
 *
 * Called by Markdown with HTML the model made, which is safe by construction. The result equals setting innerHTML.
 */

import { growthOf } from "./growth";

const scratch = document.createElement("template");

export function graft(element: Element, html: string, before: string): void {
  if (before === "" || element.childNodes.length === 0) element.innerHTML = html;
  else if (!lengthen(element, html, before)) {
    scratch.innerHTML = html;
    adopt(element, scratch.content);
  }
}

/** Only the last words changed, which is nearly always: no more than those are parsed. */
function lengthen(element: Element, html: string, before: string): boolean {
  const growth = growthOf(before, html);
  let last: Element | null = element;
  for (let depth = growth?.depth ?? 0; depth > 0; depth--) last = last?.lastElementChild ?? null;
  const text = growth?.replaces ? last?.lastChild : null;
  if (growth === null || last === null || text === undefined || (text !== null && !(text instanceof Text))) return false;
  if (/[<>&]/.test(growth.html)) {
    scratch.innerHTML = growth.html;
    const [first, ...rest] = scratch.content.childNodes;
    if (text && first instanceof Text) rewrite(text, first.data);
    else if (first) text ? text.replaceWith(first) : last.append(first);
    last.append(...rest);
  } else if (text) rewrite(text, growth.html);
  else if (growth.html !== "") last.append(growth.html);
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
