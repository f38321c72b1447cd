/**
 * Room for an on-screen keyboard where the browser lays it over the page (WebKit); elsewhere the page itself is resized and
 * there is nothing to do. `--keyboard` is read by style/layout.css.
 */

// Smaller than any keyboard, larger than any toolbar that comes and goes.
const KEYBOARD_PX = 120;

export function followKeyboard(): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const measure = (): void => {
    const covered = window.innerHeight - viewport.height - viewport.offsetTop;
    // Zooming in shrinks the viewport too; then nothing is covered.
    const height = viewport.scale === 1 && covered > KEYBOARD_PX ? covered : 0;
    document.documentElement.style.setProperty("--keyboard", `${height}px`);
  };
  viewport.addEventListener("resize", measure);
  viewport.addEventListener("scroll", measure);
}
