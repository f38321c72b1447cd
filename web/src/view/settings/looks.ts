/** Density and motion, chosen for this device. `public/theme.js` applies them before the first paint; this changes them. */

export type Density = "roomy" | "compact";
export type Motion = "system" | "less";

export const DENSITIES: readonly Density[] = ["roomy", "compact"];
export const MOTIONS: readonly Motion[] = ["system", "less"];

export function chosenDensity(): Density {
  return document.documentElement.dataset["density"] === "compact" ? "compact" : "roomy";
}

export function chosenMotion(): Motion {
  return document.documentElement.dataset["motion"] === "less" ? "less" : "system";
}

export function chooseDensity(density: Density): void {
  keep("density", density, density === "roomy");
}

export function chooseMotion(motion: Motion): void {
  keep("motion", motion, motion === "system");
}

function keep(name: string, value: string, isUsual: boolean): void {
  if (isUsual) delete document.documentElement.dataset[name];
  else document.documentElement.dataset[name] = value;
  try {
    localStorage.setItem(`palaver.${name}`, value);
  } catch {
    // No storage: the choice lasts until the page is closed.
  }
}
