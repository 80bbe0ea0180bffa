/**
 * Which of two states of one resource is newer (L2): resourceVersions of the same resource are whole numbers that grow, compared without
 * making numbers of them. Upstream: apimachinery/pkg/util/resourceversion (v1.36).
 */

/** @throws Error for a text that is no resourceVersion. */
export function compareResourceVersion(a: string, b: string): number {
  for (const version of [a, b]) if (!/^[1-9]\d*$/.test(version)) throw new Error(`resource version is not well formed: ${JSON.stringify(version)}`)
  return a.length === b.length ? (a < b ? -1 : a > b ? 1 : 0) : a.length - b.length
}

/** False for '' (nothing yet), which is older than anything. */
export function isAtLeast(have: string, wanted: string): boolean {
  return have !== '' && have !== '0' && compareResourceVersion(have, wanted) >= 0
}
