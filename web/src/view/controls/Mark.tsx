/** Palaver's mark: three lines, spoken in turn. */

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path className="mark-ink" d="M4 8h13" />
      <path className="mark-live" d="M13 16h15" />
      <path className="mark-ink" d="M4 24h8" />
    </svg>
  );
}
