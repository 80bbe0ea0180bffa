/**
 * Many real pods at once, over what containerd needs for as many: a bare client makes the same calls, as many at a time as the kubelet does.
 * Whatever else the machine does slows both, so what is compared is measured in turns.
 */
import { inParallel } from '../cluster/bareCluster.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { type BareNode, podByHand, removeByHand } from '../tools/barePods.ts'
import type { LoadClient } from '../tools/load.ts'
import { type LocalCluster, withCluster } from '../tools/localCluster.ts'
import { nodesForPods, obstacleToPods, type PodWatch, podByApi, removeByApi, watchPods, withPods } from '../tools/realPods.ts'
import { median, rounded } from '../tools/statistics.ts'

const rounds = 8
const together = 4
const crowds = 2
const crowd = 100

export const pods: Scenario = {
  name: 'pods',
  about: `real pods at once, ${together} and ${crowd}`,
  skipped: obstacleToPods,
  run: (context) => withCluster(context.dir, 'pods', nodesForPods, (cluster) => measure(cluster, context)),
}

function measure(cluster: LocalCluster, { dir, signal, progress }: ScenarioContext): Promise<Measurement[]> {
  return withPods(cluster, dir, async ({ client, bare, emptied }) => {
    const watch = await watchPods(client)
    const few = { floor: [] as Batch[], real: [] as Batch[] }
    for (let round = 0; round < rounds; round++) {
      signal.throwIfAborted()
      few.floor.push(await batchByHand(bare, `few-floor-${round}`, together))
      few.real.push(await batchByApi(client, watch, `few-${round}`, together))
      await emptied()
    }
    progress(`${rounds} times ${together} pods`)
    const many = { floor: [] as Batch[], real: [] as Batch[] }
    for (let round = 0; round < crowds; round++) {
      signal.throwIfAborted()
      many.floor.push(await batchByHand(bare, `many-floor-${round}`, crowd))
      many.real.push(await batchByApi(client, watch, `many-${round}`, crowd))
      await emptied()
      progress(`${crowd} pods, ${round + 1} of ${crowds}`)
    }
    const floor = median(few.floor.flatMap(({ pods }) => pods))
    const single = few.real.flatMap((batch) => batch.pods)
    return [
      { what: `floor, ${together} at once: each pod`, unit: 'ms', values: few.floor.flatMap((batch) => batch.pods) },
      { what: `creation over the API to Running seen, ${together} at once`, unit: 'ms', values: single },
      { what: 'the same over the floor', unit: '%', values: single.map((value) => (value / floor - 1) * 100), target: { atMost: 15 } },
      { what: `floor, ${crowd} pods: until the last`, unit: 'ms', values: many.floor.map(({ totalMs }) => totalMs) },
      {
        what: `${crowd} pods over the API until the last runs`,
        unit: 'ms',
        values: many.real.map(({ totalMs }) => totalMs),
        note: `each from its creation, p50 ${rounded(median(many.real.flatMap((batch) => batch.pods)))} ms`,
      },
      {
        what: 'the same over the floor',
        unit: '%',
        values: many.real.map(({ totalMs }, index) => (totalMs / (many.floor[index]?.totalMs ?? Number.NaN) - 1) * 100),
        target: { atMost: 10 },
      },
    ]
  })
}

interface Batch {
  /** From the first request to the last pod that runs. */
  readonly totalMs: number
  /** Each pod's own time. */
  readonly pods: readonly number[]
}

async function batchByHand(node: BareNode, prefix: string, count: number): Promise<Batch> {
  const started = performance.now()
  const bare = await inParallel(count, (index) => podByHand(node, `${prefix}-${index}`), together)
  const totalMs = performance.now() - started
  await inParallel(count, (index) => removeByHand(node, bare[index]!), together)
  return { totalMs, pods: bare.map(({ tookMs }) => tookMs) }
}

async function batchByApi(client: LoadClient, watch: PodWatch, prefix: string, count: number): Promise<Batch> {
  const started = performance.now()
  const pods = await inParallel(count, (index) => podByApi(client, watch, `${prefix}-${index}`), count)
  const totalMs = performance.now() - started
  await inParallel(count, (index) => removeByApi(client, watch, `${prefix}-${index}`), count)
  return { totalMs, pods }
}
