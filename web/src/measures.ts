/** How the page says numbers, sizes, money and times: short, in the unit a person would use. Pure. */

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const weekdayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "long" });
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long" });
const shortDayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const yearDayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" });
const exactFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "medium" });
const numberFormat = new Intl.NumberFormat("en");

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export function number(value: number): string {
  return numberFormat.format(value);
}

/** "1 file", "3 files". */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** "0.4 s", "12 s", "3 min 05 s", "1 h 12 min". */
export function duration(ms: number): string {
  if (ms < 0) return "0 s";
  if (ms < 950) return `${Math.max(0.1, Math.round(ms / 100) / 10)} s`;
  const seconds = Math.round(ms / SECOND_MS);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** A time that is still running: whole seconds only, so that the line does not flicker. */
export function elapsed(ms: number): string {
  return ms < SECOND_MS ? "0 s" : duration(Math.floor(ms / SECOND_MS) * SECOND_MS);
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(value < 10 * 1024 ? 1 : 0)} KB`;
  return `${(value / 1024 / 1024).toFixed(1)} MB`;
}

/** "830", "12.4k", "1.2M": tokens are never read to the last digit. */
export function tokens(value: number): string {
  if (value < 1000) return String(value);
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 100_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export function money(usd: number): string {
  if (usd === 0) return "$0";
  return usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

/** "1.2 %" is nobody's business: whole per cent. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function clock(ts: number): string {
  return clockFormat.format(ts);
}

export function exactTime(ts: number): string {
  return exactFormat.format(ts);
}

export function startOfDay(ts: number): number {
  return new Date(ts).setHours(0, 0, 0, 0);
}

/** "Today", "Yesterday", "Tuesday", "4 November", "4 November 2025". */
export function day(ts: number, now: number): string {
  const days = Math.round((startOfDay(now) - startOfDay(ts)) / DAY_MS);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return weekdayFormat.format(ts);
  return new Date(ts).getFullYear() === new Date(now).getFullYear() ? dayFormat.format(ts) : yearDayFormat.format(ts);
}

/** "now", "4 min", "3 h", "Tue", "4 Nov": for a narrow column. */
export function ago(ts: number, now: number): string {
  const past = now - ts;
  if (past < MINUTE_MS) return "now";
  if (past < HOUR_MS) return `${Math.floor(past / MINUTE_MS)} min`;
  if (startOfDay(now) === startOfDay(ts)) return `${Math.floor(past / HOUR_MS)} h`;
  if (past < 6 * DAY_MS) return weekdayFormat.format(ts).slice(0, 3);
  return shortDayFormat.format(ts);
}

/** "14:02", "Tuesday, 14:02", "4 November, 14:02". */
export function dayAndClock(ts: number, now: number): string {
  return startOfDay(now) === startOfDay(ts) ? clock(ts) : `${day(ts, now)}, ${clock(ts)}`;
}

/** "exit 1"; below zero it is the signal that ended the program. */
export function exit(code: number): string {
  return code < 0 ? `killed by signal ${-code}` : `exit ${code}`;
}
