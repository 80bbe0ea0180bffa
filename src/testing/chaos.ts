/** Random faults, all from one seed: the same seed gives the same faults. All faults are removed at the end. */
import { type Random, seededRandom } from '#base/random'
import type { TestCluster } from './cluster.ts'
import type { SimulatedNode } from './node.ts'

export interface ChaosOptions {
  readonly seed: number
  /** How long, in the cluster's time. */
  readonly forMs: number
  /** From one fault to the next. Default 4 s. */
  readonly everyMs?: number | undefined
  /** Which of the faults below; default all. */
  readonly only?: readonly FaultName[] | undefined
}

interface Stage {
  readonly cluster: TestCluster
  readonly random: Random
}

const pick = <T>(random: Random, from: readonly T[]): T => from[random.int(from.length)] as T
const verbs = ['create', 'update', 'patch', 'delete', 'get', 'list'] as const
const reasons = ['InternalError', 'TooManyRequests', 'Conflict', 'ServiceUnavailable', 'Timeout'] as const
const controlPlane = ['kube-controller-manager', 'kube-scheduler'] as const
const crashable = ({ cluster, random }: Stage) => pick(random, [...controlPlane, ...cluster.nodes.map(({ name }) => `kubelet/${name}`)])

function withNode({ cluster, random }: Stage, act: (node: SimulatedNode) => void): string {
  const node = pick(random, cluster.nodes)
  act(node)
  return node.name
}

/** Each injects a fault and returns its target. Calls of the test itself are spared, so that it sees the real state. */
const harms = {
  refuse: (stage: Stage) => {
    const [component, verb, reason] = [crashable(stage), pick(stage.random, verbs), pick(stage.random, reasons)]
    stage.cluster.faults.refuse({ component, verb, times: 1 + stage.random.int(5) }, reason)
    return `${component} ${verb}: ${reason}`
  },
  dropRequest: (stage: Stage) => {
    const [component, verb] = [crashable(stage), pick(stage.random, verbs)]
    stage.cluster.faults.drop({ component, verb, times: 1 + stage.random.int(3) }, 'request')
    return `${component} ${verb}`
  },
  dropAnswer: (stage: Stage) => {
    const [component, verb] = [crashable(stage), pick(stage.random, verbs)]
    stage.cluster.faults.drop({ component, verb, times: 1 + stage.random.int(3) }, 'answer')
    return `${component} ${verb}`
  },
  delay: (stage: Stage) => {
    const component = crashable(stage)
    stage.cluster.faults.delay({ component, times: 10 }, () => stage.random.int(3_000))
    return component
  },
  breakWatches: (stage: Stage) => {
    const component = crashable(stage)
    return `${stage.cluster.faults.breakWatches({ component })} of ${component}`
  },
  crashAt: (stage: Stage) => {
    const [component, nth] = [crashable(stage), 1 + stage.random.int(20)]
    stage.cluster.faults.crashAt(component, nth, pick(stage.random, ['before', 'after']))
    return `${component} at call ${nth}`
  },
  compact: async ({ cluster }: Stage) => {
    await cluster.compact()
    return ''
  },
  restartApiServer: async ({ cluster, random }: Stage) => {
    const how = pick(random, ['stop', 'crash'] as const)
    await cluster.restart('kube-apiserver', how)
    return how
  },
  rebootNode: (stage: Stage) => withNode(stage, (node) => node.reboot()),
  crashNode: (stage: Stage) => withNode(stage, (node) => node.crash()),
  startNode: (stage: Stage) => withNode(stage, (node) => node.start()),
  partition: (stage: Stage) => withNode(stage, (node) => node.partition()),
  heal: (stage: Stage) => withNode(stage, (node) => node.heal()),
  runtimeIll: (stage: Stage) => withNode(stage, (node) => node.notReady()),
  runtimeWell: (stage: Stage) => withNode(stage, (node) => node.ready()),
} as const satisfies Record<string, (stage: Stage) => string | Promise<string>>

export type FaultName = keyof typeof harms

/** Injects faults for `forMs`, then removes them all; returns what it did, in order. */
export async function chaos(cluster: TestCluster, { seed, forMs, everyMs = 4_000, only }: ChaosOptions): Promise<string[]> {
  const random = seededRandom(seed)
  const stage = { cluster, random }
  const names = only ?? (Object.keys(harms) as FaultName[])
  const done: string[] = []
  for (let passedMs = 0; passedMs < forMs; passedMs += everyMs) {
    const name = pick(random, names)
    const whom = await harms[name](stage)
    done.push(`${passedMs / 1000} s: ${name} ${whom}`)
    await cluster.clock.advance(everyMs)
  }
  cluster.faults.clear()
  for (const node of cluster.nodes) {
    node.heal()
    node.ready()
    node.start()
  }
  return done
}
