/**
 * A real pod: `kubectl apply` to Running, with the image on the node. The floor is what containerd itself needs for the same pod, measured in
 * the same run by calling it directly; the difference is what the cluster adds.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { podByHand, removeByHand } from '../tools/barePods.ts'
import { type LocalCluster, withCluster } from '../tools/localCluster.ts'
import { nodesForPods, obstacleToPods, podByApi, podManifest, removeByApi, watchPods, withPods } from '../tools/realPods.ts'
import { median } from '../tools/statistics.ts'

const repeats = 15
const execute = promisify(execFile)

export const pod: Scenario = {
  name: 'pod',
  about: 'a real pod, `kubectl apply` to Running, image on the node',
  skipped: obstacleToPods,
  run: (context) => withCluster(context.dir, 'pod', nodesForPods, (cluster) => measure(cluster, context)),
}

function measure(cluster: LocalCluster, context: ScenarioContext): Promise<Measurement[]> {
  return withPods(cluster, context.dir, async ({ client, bare: node }) => {
    const samples = { apply: [] as number[], create: [] as number[], floor: [] as number[] }
    const watch = await watchPods(client)
    for (let repeat = 0; repeat < repeats; repeat++) {
      context.signal.throwIfAborted()
      const bare = await podByHand(node, `floor-${repeat}`)
      samples.floor.push(bare.tookMs)
      await removeByHand(node, bare)
      samples.create.push(await podByApi(client, watch, `create-${repeat}`))
      await removeByApi(client, watch, `create-${repeat}`)
      const started = performance.now()
      await apply(cluster, `apply-${repeat}`)
      samples.apply.push((await watch.running(`apply-${repeat}`)) - started)
      await removeByApi(client, watch, `apply-${repeat}`)
      context.progress(`pod ${repeat + 1} of ${repeats}`)
    }
    const floor = median(samples.floor)
    return [
      { what: '"skiff up" with two real nodes and cluster DNS', unit: 'ms', values: [cluster.upMs] },
      { what: 'floor: RunPodSandbox + CreateContainer + StartContainer', unit: 'ms', values: samples.floor },
      { what: 'creation over the API to Running seen', unit: 'ms', values: samples.create },
      { what: 'the same over the floor', unit: 'ms', values: samples.create.map((value) => value - floor), target: { atMost: 60 } },
      { what: 'kubectl apply, its launch to Running seen', unit: 'ms', values: samples.apply },
    ]
  })
}

async function apply(cluster: LocalCluster, name: string): Promise<void> {
  const file = path.join(path.dirname(cluster.kubeconfig), `${name}.json`)
  writeFileSync(file, JSON.stringify(podManifest(name)))
  await execute('kubectl', ['--kubeconfig', cluster.kubeconfig, 'apply', '-f', file])
}
