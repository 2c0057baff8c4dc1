// Numbers as the command line prints them: three significant digits and a unit.
const digits = (value) => {
  if (value === 0) return "0";
  const size = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(size, 12));
};

const scaled = (value, steps) => {
  const step = steps.find(([size]) => Math.abs(value) >= size) ?? steps[steps.length - 1];
  return `${digits(value / step[0])} ${step[1]}`;
};

export const seconds = (s) => s === 0 ? "0 s" : scaled(s, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
export const bytes = (b) => scaled(b, [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]]);
export const count = (n) => scaled(n, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]).trim();
export const joules = (j) => scaled(j, [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"]]);
export const percent = (part) => `${(100 * part).toFixed(1)} %`;
export const dollars = (usd) => `${digits(usd)} USD`;
export const grouped = (n) => Math.round(n).toLocaleString("en-US");
export const signed = (part) => `${part > 0 ? "+" : ""}${(100 * part).toFixed(1)} %`;

// "exposed_comm" as "exposed comm"
export const words = (name) => name.replaceAll("_", " ");
