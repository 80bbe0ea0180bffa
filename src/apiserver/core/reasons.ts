/** Joins several reasons into one text (L3), without duplicates. Upstream: apimachinery/pkg/util/errors Aggregate. */
export function aggregateReasons(reasons: readonly string[]): string {
  const all = [...new Set(reasons)]
  return all.length === 1 ? (all[0] as string) : `[${all.join(', ')}]`
}
