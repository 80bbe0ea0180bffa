/**
 * Quantities as numbers (L3, pure): what cgroup files and the downward API need. Values come from validated objects;
 * text that is no quantity counts as 0. Upstream: apimachinery/pkg/api/resource (v1.36).
 */

const multipliers: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

const pattern = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/

/** The exact value as a number, e.g. '100m' is 0.1. */
export function quantity(text: string | undefined): number {
  const match = pattern.exec(text ?? '')
  if (!match) return 0
  return Number(`${match[1]}${match[2] ?? ''}`) * (multipliers[match[3] ?? ''] ?? 1)
}

/** Rounded up to whole units, as Quantity.Value does. */
export function wholeUnits(text: string | undefined): number {
  return Math.ceil(quantity(text) - 1e-9)
}

/** Rounded up to thousandths, as Quantity.MilliValue does. */
export function milliUnits(text: string | undefined): number {
  return Math.ceil(quantity(text) * 1000 - 1e-6)
}
