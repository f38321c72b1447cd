/**
 * The page's drawings: 16 × 16, one stroke. Always decoration; whoever uses one says in words what it means.
 */

const PATHS = {
  add: "M8 3v10M3 8h10",
  archive: "M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3",
  back: "M10 3 5 8l5 5",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.7 14.5h2.6",
  book: "M8 4c-1.5-1-3.5-1.3-5.5-1v9c2-.3 4 0 5.5 1 1.5-1 3.5-1.3 5.5-1V3c-2-.3-4 0-5.5 1zM8 4v9",
  branch: "M4.5 5.6v4.8M4.5 2.6a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM4.5 10.4a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM11.5 2.6a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM11.5 5.6c0 3.2-7 1.4-7 4.8",
  check: "M3 8.5 6.5 12 13 4.5",
  chevron: "M6 3.5 10.5 8 6 12.5",
  circle: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2",
  compress: "M3 2.5h10M3 13.5h10M8 4.5v2.6M6.5 6 8 7.5 9.5 6M8 11.5V8.9M6.5 10 8 8.5 9.5 10",
  cut: "M3 8h2M7 8h2M11 8h2",
  diff: "M8 2.5v7M4.5 6h7M4.5 13h7",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  edit: "M3 13l.7-2.9L10.6 3.2a1 1 0 0 1 1.4 0l.8.8a1 1 0 0 1 0 1.4L5.9 12.3z",
  export: "M8 10V2.5M5 5.5l3-3 3 3M3 9.5v4h10v-4",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  folder: "M2 4h4l1.5 1.5H14v7.5H2z",
  globe: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM2.7 8h10.6M8 2.5c3.2 3.4 3.2 7.6 0 11-3.2-3.4-3.2-7.6 0-11z",
  hold: "M5.5 3.5v9M10.5 3.5v9",
  image: "M2.5 3h11v10h-11zM2.5 11l3-3.2 2.4 2.4 2.2-2 3.4 3.3M10.6 5.8h.01",
  keys: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  letter: "M2.5 4h11v8.5h-11zM2.5 5 8 9l5.5-4",
  list: "M3 4h10M3 8h10M3 12h6",
  moon: "M12.8 9.6A5.3 5.3 0 0 1 6.4 3.2a5.3 5.3 0 1 0 6.4 6.4z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  open: "M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5",
  plan: "M2.5 4l1 1 1.8-2M8 4h5.5M2.5 8.5l1 1 1.8-2M8 8.5h5.5M2.5 13l1 1 1.8-2M8 13h5.5",
  question: "M6 6a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.7h.01M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2z",
  retry: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.5 3.5",
  send: "M8 13V3.2M3.8 7.2 8 3l4.2 4.2",
  shield: "M8 2l5 1.8v4c0 3-2 5.2-5 6.2-3-1-5-3.2-5-6.2v-4z",
  sidebar: "M2.5 3h11v10h-11zM6.3 3v10",
  sliders: "M2.5 5h5.2M10.8 5h2.7M9.2 3.4v3.2M2.5 11h2.7M8.3 11h5.2M6.8 9.4v3.2",
  spark: "M8 2.5l1.4 4.1 4.1 1.4-4.1 1.4L8 13.5 6.6 9.4 2.5 8l4.1-1.4z",
  steer: "M3 13V9a3 3 0 0 1 3-3h7M10 3l3 3-3 3",
  stop: "M4.5 4.5h7v7h-7z",
  sun: "M8 5.3a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  system: "M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3",
  terminal: "M2.5 3h11v10h-11zM5 6.2 7 8 5 9.8M8.5 10h2.5",
  thought: "M5.5 12.2H5A3 3 0 0 1 4.4 6.3 3.7 3.7 0 0 1 11.5 6a3.1 3.1 0 0 1-.5 6.2h-.5M6.5 14h3",
  tool: "M10.2 2.6a3.2 3.2 0 0 0-3 4.4L2.8 11.4a1.3 1.3 0 0 0 1.8 1.8L9 8.8a3.2 3.2 0 0 0 4.3-3.9L11.3 6.9 9.4 6.6 9.1 4.7l2-2a3 3 0 0 0-.9-.1z",
  trash: "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.5 9h6l.5-9M7 7v4M9 7v4",
  users: "M6 8a2.4 2.4 0 1 0 0-4.8A2.4 2.4 0 0 0 6 8zM1.8 13.2a4.2 4.2 0 0 1 8.4 0M10.5 3.4a2.3 2.3 0 0 1 0 4.4M12 9.8a4 4 0 0 1 2.2 3.4",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  wrap: "M2.5 4h11M2.5 8h9a2 2 0 0 1 0 4H8M9.5 10.5 8 12l1.5 1.5M2.5 12h3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return <Drawing path={PATHS[name]} className={name === "more" ? "icon dots" : "icon"} />;
}

/** For a part that comes later and brings its own path, which the first picture then does not wait for. */
export function Drawing({ path, className = "icon" }: { path: string; className?: string }) {
  return (
    <svg className={className} viewBox="0 0 16 16" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
