/**
 * How many values at the start of a range are kept for static choices (L3, pure); dynamic allocation uses them last.
 * Upstream: calculateRangeOffset of ipallocator and portallocator (v1.36).
 */

const minBand = 16

/** At least 16, at most `max`, otherwise one value in `step`; none in a range that is too small. */
export function staticBand(size: number, { step, max }: { readonly step: number; readonly max: number }): number {
  return size <= minBand ? 0 : Math.min(Math.max(minBand, Math.floor(size / step)), max)
}
