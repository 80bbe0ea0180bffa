/**
 * Records requests while the live view is open (L4): a rule for a sample that the server bounds, asked for again before it ends; without the right to it, the user's own
 * requests. In a bundle it reads what was recorded.
 */
import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { type ObjectEvent, type TracedRequest, type TraceList, type TraceRule, tracesPath } from '#api/debug/traces'
import { isPoll, isTelling, recordedText } from '../../../model/liveMap.ts'
import { ApiError, get, messageOf, write } from '../../api.ts'
import { isStill, session } from '../../session.ts'

export interface Recorded {
  /** The newest first. */
  readonly requests: readonly TracedRequest[]
  readonly events: readonly ObjectEvent[]
  /** How many of the requests there are. */
  readonly text: string
  readonly error: string
  /** The server's time of the last answer. */
  readonly nowMs: number
}

const everyMs = 1_000
const ruleSeconds = 20
/** At most so many requests a second are recorded for the view, whatever the server's load. */
const perSecond = 20
const mostRequests = 60
const mostEvents = 300

export function useRecording() {
  const recorded = useMemo(() => signal<Recorded>({ requests: [], events: [], text: '', error: '', nowMs: 0 }), [])
  useEffect(() => {
    const stopping = new AbortController()
    const work = isStill() ? readRecorded : record
    void work(stopping.signal, (next) => {
      recorded.value = next(recorded.peek())
    })
    return () => stopping.abort()
  }, [])
  return recorded
}

type Change = (next: (before: Recorded) => Recorded) => void

/** What a bundle has. */
async function readRecorded(signal: AbortSignal, change: Change): Promise<void> {
  try {
    const { requests, events } = await get<TraceList>(`${tracesPath}?all=1`, { signal })
    const telling = requests.filter(isTelling)
    const text = telling.length === 0 ? 'the bundle has no recorded requests' : 'recorded before the bundle was taken'
    change(() => ({ requests: telling, events, text, error: '', nowMs: 0 }))
  } catch (error) {
    if (!signal.aborted) change((before) => ({ ...before, error: messageOf(error) }))
  }
}

async function record(stopped: AbortSignal, change: Change): Promise<void> {
  let [since, ruleEndsAt, isOfAll]: [number | undefined, number, boolean] = [undefined, 0, true]
  let sampled: TraceList['sampled']
  while (!stopped.aborted) {
    try {
      if (!document.hidden) {
        if (performance.now() > ruleEndsAt - 5_000) {
          isOfAll = await askForRecords(stopped)
          ruleEndsAt = performance.now() + ruleSeconds * 1_000
        }
        const list: TraceList = await get(`${tracesPath}?since=${since ?? 0}`, { signal: stopped })
        const before = sampled
        sampled = isOfAll ? list.sampled : undefined
        // The first answer says what time it is on the server; what was recorded for others before is not shown.
        const isFirst = since === undefined
        since = list.nowMs
        const facts = { text: recordedText(sampled, before), error: '', nowMs: list.nowMs ?? 0 }
        if (isFirst) change((last) => ({ ...last, ...facts }))
        else
          change(({ requests, events }) => ({
            requests: [...list.requests.filter((request) => !isPoll(request)), ...requests].slice(0, mostRequests),
            events: [...events, ...list.events].slice(-mostEvents),
            ...facts,
          }))
      }
    } catch (error) {
      if (stopped.aborted) return
      change((before) => ({ ...before, error: messageOf(error) }))
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** @returns whether requests of all users are recorded */
async function askForRecords(signal: AbortSignal): Promise<boolean> {
  const post = (rule: Omit<TraceRule, 'seconds'>) => write('POST', `${tracesPath}/rules`, { ...rule, seconds: ruleSeconds }, { signal })
  try {
    await post({ perSecond })
    return true
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error
    const facts = session.peek()
    if (typeof facts !== 'string') await post({ user: facts.user })
    return false
  }
}
