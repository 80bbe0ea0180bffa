/** Collects what nodes and pods use (L4), from the first time that it is asked for until the user logs out: metrics.k8s.io has no past. */
import { signal } from '@preact/signals'
import { type NodeMetrics, sampleOf, type UsageSample, withSample } from '../model/usage.ts'
import { get, messageOf } from './api.ts'
import { session } from './session.ts'

export const collected = {
  nodes: signal<readonly UsageSample[]>([]),
  pods: signal<readonly UsageSample[]>([]),
  error: signal(''),
  /** Whether the server has answered once; without nodes it measures nothing. */
  isAnswered: signal(false),
}

const everyMs = 10_000
let isCollecting = false

export function collectUsage(): void {
  if (isCollecting) return
  isCollecting = true
  void collect().then(() => {
    // The next user of this tab sees nothing of this one's.
    collected.nodes.value = []
    collected.pods.value = []
    collected.isAnswered.value = false
    isCollecting = false
  })
}

async function collect(): Promise<void> {
  while (typeof session.peek() !== 'string') {
    try {
      for (const what of ['nodes', 'pods'] as const) {
        const { items } = await get<{ items: readonly NodeMetrics[] }>(`/apis/metrics.k8s.io/v1beta1/${what}`)
        if (items.length > 0) collected[what].value = withSample(collected[what].peek(), sampleOf(items, Date.now()))
      }
      collected.error.value = ''
      collected.isAnswered.value = true
    } catch (error) {
      collected.error.value = messageOf(error)
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
