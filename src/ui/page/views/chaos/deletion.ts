/**
 * Deletes random pods of a selection for a while (L4). The page sends the requests, so that a run ends with the tab, at the latest after its time; it continues while the
 * user looks at other views.
 */
import { signal } from '@preact/signals'
import { type FaultyPod, mostMinutes, mostPerMinute, removalOf, someOf } from '../../../model/chaos.ts'
import { objectPath } from '../../../model/places.ts'
import { ApiError, messageOf, write } from '../../api.ts'
import { session } from '../../session.ts'
import { say } from '../../state.ts'
import { podKind, simulatedPods } from './requests.ts'

export interface DeletionPlan {
  /** Empty: all namespaces. */
  readonly scope: string
  readonly labels: string
  readonly perMinute: number
  readonly minutes: number
  readonly isEviction: boolean
}

export interface Deletion extends DeletionPlan {
  readonly endsAtMs: number
  readonly removed: number
  /** By disruption budgets. */
  readonly refused: number
  readonly error: string
  readonly stop: () => void
}

/** The run of this tab; undefined: there is none. */
export const deletion = signal<Deletion | undefined>(undefined)

/** The selection is read again after this long. */
const readAgainMs = 5_000

const bounded = (value: number, most: number) => Math.min(most, Math.max(1, Math.floor(value) || 1))

/** Begins a run instead of the one before. */
export function startDeletion(wanted: DeletionPlan): void {
  deletion.peek()?.stop()
  const plan = { ...wanted, perMinute: bounded(wanted.perMinute, mostPerMinute), minutes: bounded(wanted.minutes, mostMinutes) }
  const stopping = new AbortController()
  const endsAtMs = Date.now() + plan.minutes * 60_000
  deletion.value = { ...plan, endsAtMs, removed: 0, refused: 0, error: '', stop: () => stopping.abort() }
  void run(plan, endsAtMs, stopping.signal)
}

async function run(plan: DeletionPlan, endsAtMs: number, stopped: AbortSignal): Promise<void> {
  const count = (change: (before: Deletion) => Partial<Deletion>) => {
    const before = deletion.peek()
    if (before && !stopped.aborted) deletion.value = { ...before, ...change(before) }
  }
  const next = createChoice(plan, stopped)
  while (!stopped.aborted && Date.now() < endsAtMs && typeof session.peek() !== 'string') {
    try {
      const pod = await next()
      if (pod) await removePod(pod, plan.isEviction)
      count(({ removed }) => (pod ? { removed: removed + 1, error: '' } : { error: 'no pod matches now' }))
    } catch (error) {
      const isBudget = error instanceof ApiError && error.status === 429
      count(({ refused }) => (isBudget ? { refused: refused + 1 } : { error: messageOf(error) }))
    }
    await pause(60_000 / plan.perMinute, stopped)
  }
  const last = deletion.peek()
  // Another run may have begun.
  if (last?.endsAtMs !== endsAtMs) return
  deletion.value = undefined
  say('good', `Pods ${plan.isEviction ? 'evicted' : 'deleted'}: ${last.removed}`)
}

/** Gives a random pod of the selection, none twice. */
function createChoice({ scope, labels }: DeletionPlan, stopped: AbortSignal): () => Promise<FaultyPod | undefined> {
  const taken = new Set<string>()
  let [pods, readAtMs]: [FaultyPod[], number] = [[], Number.NEGATIVE_INFINITY]
  return async () => {
    if (performance.now() - readAtMs > readAgainMs || pods.length === 0) {
      pods = (await simulatedPods(scope, labels, stopped)).filter(({ metadata: { uid = '' } }) => !taken.has(uid))
      readAtMs = performance.now()
    }
    const [pod] = someOf(pods, 1, Math.random)
    if (!pod) return undefined
    pods = pods.filter((one) => one !== pod)
    taken.add(pod.metadata.uid ?? '')
    return pod
  }
}

/** A pod that is gone meanwhile is no failure. */
async function removePod(pod: FaultyPod, isEviction: boolean): Promise<void> {
  const { namespace = '', name = '' } = pod.metadata
  const { method, body } = removalOf(pod, isEviction)
  try {
    await write(method, objectPath(podKind, { namespace, name }, isEviction ? 'eviction' : undefined), body)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
  }
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      stopped.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    stopped.addEventListener('abort', done, { once: true })
  })
}
