// Instants are microseconds since 1970; people see their own zone.

export const SECOND = 1e6, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
const short = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const hours = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

export const date = (at) => new Date(at / 1000);
export const iso = (at) => date(at).toISOString();
export const instant = (text) => (text === null ? null : Date.parse(text) * 1000);
export const showClock = (at) => clock.format(date(at));
export const showFull = (at) => full.format(date(at));

// As short as it can be said: the day only if it is another one.
export function showTime(at, now) {
  return date(at).toDateString() === date(now).toDateString() ? clock.format(date(at)) : short.format(date(at));
}

export function showLength(length) {
  if (length === null || length === undefined) return "–";
  const parts = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND]];
  const first = parts.findIndex(([, one]) => length >= one);
  if (first < 0) return length < 1000 ? "0 s" : `${(length / SECOND).toFixed(1)} s`;
  const [unit, size] = parts[first];
  const whole = Math.floor(length / size);
  const next = parts[first + 1];
  const rest = next && whole < 10 ? Math.floor((length - whole * size) / next[1]) : 0;
  return `${whole} ${unit}` + (rest ? ` ${rest} ${next[0]}` : "");
}

const STEPS = [SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];

// Where an axis has its marks: at round times of the viewer's zone.
export function ticks(start, end, most) {
  const step = STEPS.find((one) => (end - start) / one <= most) || STEPS[STEPS.length - 1];
  const shift = -date(start).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((start + shift) / step) * step - shift; at < end; at += step) {
    const midnight = (at + shift) % DAY === 0;
    const text = step >= DAY || midnight ? days.format(date(at)) : step < MINUTE ? clock.format(date(at)) : hours.format(date(at));
    found.push({ at, text, strong: midnight && step < DAY });
  }
  return found;
}
