/** Fan-out: writes at a steady rate, many watchers that all must see all of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measurement } from '../scenario.ts'
import { usageOf } from '../tools/machine.ts'
import { configMap } from '../tools/objects.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'
import { watchLines } from '../tools/watchLines.ts'
import { type ApiBench, prepareNamespace } from './apiBench.ts'

const watchers = 100
const writes = 200
const writesPerSecond = 50
const namespace = 'watches'
const path = `/api/v1/namespaces/${namespace}/configmaps`

export async function measureWatches({ client, serverPid, context }: ApiBench): Promise<Measurement[]> {
  context.progress(`${watchers} watchers`)
  await prepareNamespace(client, namespace)
  const { metadata } = JSON.parse((await client.ask('GET', path)).body) as { metadata: { resourceVersion: string } }
  const connections = [await client.connect(), await client.connect()]
  const sentAt: number[] = []
  const delays: number[] = []
  await Promise.all(
    Array.from({ length: watchers }, (_, watcher) =>
      watchLines(connections[watcher % connections.length]!, `${path}?watch=true&resourceVersion=${metadata.resourceVersion}`, (line) => {
        const sent = sentAt[Number(/"name":"w-(\d+)"/.exec(line)?.[1])]
        if (sent !== undefined) delays.push(performance.now() - sent)
      }),
    ),
  )
  const before = usageOf(serverPid)
  const started = performance.now()
  for (let index = 0; index < writes; index++) {
    await sleep(Math.max(0, started + (index * 1000) / writesPerSecond - performance.now()), undefined, { signal: context.signal })
    sentAt[index] = performance.now()
    await client.loop(1, 1, () => ({ method: 'POST', path, body: configMap(namespace, `w-${index}`), contentType: 'application/json' }))
  }
  for (const deadline = performance.now() + 5000; delays.length < writes * watchers && performance.now() < deadline; ) await sleep(20)
  if (delays.length !== writes * watchers) throw new Error(`of ${writes * watchers} events only ${delays.length} arrived`)
  for (const connection of connections) connection.close()
  const cpuMicros = ((usageOf(serverPid).cpuSeconds - before.cpuSeconds) * 1e6) / delays.length
  return [
    {
      what: `watch: write issued to event seen, ${watchers} watchers, ${writesPerSecond} writes/s`,
      unit: 'ms',
      values: [median(delays)],
      note: `p99 ${rounded(percentile(delays, 0.99))} ms, server CPU ${rounded(cpuMicros)} µs per event`,
    },
  ]
}
