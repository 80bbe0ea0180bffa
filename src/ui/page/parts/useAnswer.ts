/** An answer of the server for a view (L4): asked for again when the view wants it, and dropped when the view has gone. */
import { useEffect, useState } from 'preact/hooks'
import { isRefusal, messageOf, refusedAgainMs } from '../api.ts'

export interface Asked<T> {
  readonly value: T | undefined
  readonly error: string
  readonly isAsking: boolean
  readonly again: () => void
}

/** @param key a new key asks again @param everyMs asks again this long after each answer; absent: after a refusal alone */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, key: string, everyMs?: number): Asked<T> {
  const [answer, setAnswer] = useState<{ readonly key: string; readonly value?: T; readonly error: string }>({ key: '', error: '' })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const stopping = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const take = (next: { readonly value?: T; readonly error: string }, againMs: number | undefined) => {
      if (stopping.signal.aborted) return
      setAnswer((before) => ({ ...(before.key === key ? before : {}), key, ...next }))
      if (againMs !== undefined) timer = setTimeout(() => setTurn((count) => count + 1), againMs)
    }
    ask(stopping.signal).then(
      (value) => take({ value, error: '' }, everyMs),
      (error: unknown) => take({ error: messageOf(error) }, everyMs ?? (isRefusal(error) ? refusedAgainMs : undefined)),
    )
    return () => {
      stopping.abort()
      clearTimeout(timer)
    }
  }, [key, turn])
  const isCurrent = answer.key === key
  return {
    value: isCurrent ? answer.value : undefined,
    error: isCurrent ? answer.error : '',
    isAsking: !isCurrent,
    again: () => setTurn((count) => count + 1),
  }
}
