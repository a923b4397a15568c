// Numbers and durations in words; the same rules as in report_words.py.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function durationWords(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 9.95) return `${Math.floor(seconds * 10 + 0.5) / 10} s`;
  for (let index = 0; index + 1 < UNITS.length; index += 1) {
    const [large, size] = UNITS[index];
    const [small, part] = UNITS[index + 1];
    const parts = Math.floor(seconds / part + 0.5);
    const rest = parts % (size / part);
    if (parts * part >= size) return `${Math.floor((parts * part) / size)} ${large}` + (rest ? ` ${rest} ${small}` : "");
  }
  return `${Math.floor(seconds + 0.5)} s`;
}

export function numberWords(value) {
  if (value === null || value === undefined) return "–";
  const decimals = Math.abs(value) >= 100 ? 0 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: decimals });
}

export function countWords(count, noun) {
  return `${numberWords(count)} ${noun}${count === 1 ? "" : "s"}`;
}
