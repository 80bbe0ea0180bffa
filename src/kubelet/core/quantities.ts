/**
 * Quantities as numbers (L3, pure), where absent means 0: what cgroup files and the downward API need.
 * Callers pass values of validated objects. Upstream: apimachinery/pkg/api/resource (v1.36).
 */
import { quantityAsNumber, quantityMilliValue, quantityValue } from '#api/machinery/quantity'

/** The exact value as a number, e.g. '100m' is 0.1. */
export function quantity(text: string | undefined): number {
  return text === undefined || text === '' ? 0 : quantityAsNumber(text)
}

/** Rounded up to whole units, as Quantity.Value does. */
export function wholeUnits(text: string | undefined): number {
  return text === undefined || text === '' ? 0 : quantityValue(text)
}

/** Rounded up to thousandths, as Quantity.MilliValue does. */
export function milliUnits(text: string | undefined): number {
  return text === undefined || text === '' ? 0 : quantityMilliValue(text)
}
