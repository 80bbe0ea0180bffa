/** Pods that run on simulated nodes: created as fast as the API takes them, and waited for. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadClient } from './load.ts'
import { encoded, pod } from './objects.ts'
import { watchLines } from './watchLines.ts'

const inFlight = 64

export interface WantedPods {
  readonly namespace: string
  readonly pods: number
  readonly deadlineMs: number
}

export interface RunningPods {
  /** From the first creation to the last pod that runs. */
  readonly seconds: number
  /** From each pod's creation until it runs, in milliseconds. */
  readonly delays: readonly number[]
}

export async function createAndAwait(client: LoadClient, { namespace, pods, deadlineMs }: WantedPods, signal: AbortSignal): Promise<RunningPods> {
  const path = `/api/v1/namespaces/${namespace}/pods`
  const createdAt: number[] = []
  const runningAt = new Map<number, number>()
  await watchLines(await client.connect(), `${path}?watch=true&resourceVersion=0`, (line) => {
    if (!line.includes('"phase":"Running"')) return
    const index = Number(/"name":"p-(\d+)"/.exec(line)?.[1])
    if (!runningAt.has(index)) runningAt.set(index, performance.now())
  })
  const started = performance.now()
  await client.loop(pods, inFlight, (index) => {
    createdAt[index] = performance.now()
    return { method: 'POST', path, body: encoded(pod(namespace, `p-${index}`)), contentType: 'application/json' }
  })
  while (runningAt.size < pods) {
    if (performance.now() - started > deadlineMs) throw new Error(`only ${runningAt.size} of ${pods} pods run`)
    await sleep(10, undefined, { signal })
  }
  const seconds = (Math.max(...runningAt.values()) - started) / 1000
  const delays = [...runningAt].map(([index, at]) => at - (createdAt[index] ?? at))
  return { seconds, delays }
}
