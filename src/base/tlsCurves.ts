/**
 * Curves for the exchange of keys, by the numbers of Go's CurveID, and what Node's OpenSSL calls them (L0). The hybrids with ML-KEM, which Go has too, are
 * not in it. Upstream: component-base/cli/flag/curves_flag.go (v1.36).
 */
export const curveNames: Readonly<Record<string, string>> = { 23: 'P-256', 24: 'P-384', 25: 'P-521', 29: 'X25519' }

/** A number, or one as it was written. */
type CurveId = number | string

/** @param ids by preference. Names for the TLS server; undefined for none: whatever it offers. */
export function curvesOf(ids: readonly CurveId[]): readonly string[] | undefined {
  return ids.length > 0 ? ids.flatMap((id) => curveNames[id] ?? []) : undefined
}

/** Those that cannot be offered. */
export function unknownCurves<Id extends CurveId>(ids: readonly Id[]): Id[] {
  return ids.filter((id) => !Object.hasOwn(curveNames, id))
}
