/** Work that must not overlap with other work under the same key (L3): it waits for its turn. */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createExclusive(): Exclusive {
  const last = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = turn.catch(() => {})
    last.set(key, settled)
    try {
      return await turn
    } finally {
      if (last.get(key) === settled) last.delete(key)
    }
  }
}
