/**
 * Sets of completion indexes in their written form, `0-2,5` (L3). Pure. Upstream: pkg/controller/job/indexed_job_utils.go (v1.36).
 */
export const completionIndexAnnotation = 'batch.kubernetes.io/job-completion-index'

export function parseIndexes(text: string | undefined, completions: number): Set<number> {
  const indexes = new Set<number>()
  for (const part of text ? text.split(',') : []) {
    const [first = '', last = first] = part.split('-')
    for (let index = Number(first); index <= Math.min(Number(last), completions - 1); index++) indexes.add(index)
  }
  return indexes
}

export function formatIndexes(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b)
  const runs: [number, number][] = []
  for (const index of sorted) {
    const run = runs.at(-1)
    if (run && run[1] === index - 1) run[1] = index
    else runs.push([index, index])
  }
  // Two neighbours are written as two numbers, as upstream does.
  return runs.map(([first, last]) => (first === last ? String(first) : last === first + 1 ? `${first},${last}` : `${first}-${last}`)).join(',')
}

export function completionIndex(object: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined } }): number | undefined {
  const text = object.metadata.annotations?.[completionIndexAnnotation]
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}
