/** Whether finished sentences are announced, or only the end of a turn. Remembered on this device. */

const KEY = "palaver.sentences";

export function announcesSentences(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

export function announceSentences(on: boolean): void {
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    // No storage: it lasts as long as this page.
  }
}
