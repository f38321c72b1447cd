/** Links to files that the server keeps: a click, with whichever button, fetches them with the page key. */

const KEPT = 'a[href^="/api/blobs/"], a[href^="/api/uploads/"]';

export function followKeptLinks(): void {
  const follow = (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest(KEPT) : null;
    const url = link?.getAttribute("href");
    // The right button asks for a menu.
    if (!url || event.button > 1) return;
    event.preventDefault();
    const tab = window.open("about:blank");
    void import("./kept").then(({ openKept }) => openKept(url, tab), () => tab?.close());
  };
  document.addEventListener("click", follow);
  document.addEventListener("auxclick", follow);
}
