/** Paths of folders, and how a file is mentioned in a message. Pure. */

export function nameOf(path: string): string {
  return path.split("/").filter(Boolean).at(-1) ?? path;
}

/** The folder above; null at the top. */
export function above(path: string): string | null {
  const parts = path.split("/").filter(Boolean);
  return parts.length === 0 ? null : `/${parts.slice(0, -1).join("/")}`;
}

export function inside(folder: string, name: string): string {
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

/** A message with a file mentioned at its end. A name with blanks in it is quoted, so that it stays one name. */
export function mentioned(message: string, path: string): string {
  const name = /\s/.test(path) ? `@"${path}"` : `@${path}`;
  return `${message}${message === "" || /\s$/.test(message) ? "" : " "}${name} `;
}
