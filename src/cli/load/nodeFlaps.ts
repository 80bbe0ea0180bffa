/** Nodes that fail for a while (L4): an annotation lets the container runtime of a simulated node fail, so that its kubelet reports NotReady. */
import { simulatedFailure } from '#api/helpers/nodes'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { Random } from '#base/random'
import { nodes } from '#client/builtIn'
import type { Client } from '#client/client'
import { CommandError } from '../exitCodes.ts'
import type { Failures } from './samples.ts'

export interface NodeFlapDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly failures: Failures
  readonly signal: AbortSignal
  /** How long a node fails. */
  readonly downMs: number
}

export interface NodeFlaps {
  /** Lets another node fail, which recovers by itself. */
  next(): Promise<void>
  /** All nodes recover now. */
  heal(): Promise<void>
}

const simulated = { labelSelector: 'skiff.dev/runtime=simulated' }

/** @throws CommandError unmetPrerequisite for a cluster without simulated nodes */
export async function createNodeFlaps({ client, clock, random, failures, signal, downMs }: NodeFlapDeps): Promise<NodeFlaps> {
  const well = (await client.of(nodes).list(simulated)).items.map(({ metadata }) => metadata.name ?? '')
  if (well.length === 0) throw new CommandError('unmetPrerequisite', 'nodeFlap: the cluster has no simulated nodes')
  const down = new Map<string, ReturnType<Clock['timer']>>()
  const annotate = (name: string, reason: string | null) =>
    client
      .of(nodes)
      .patch({ name }, 'merge', { metadata: { annotations: { [simulatedFailure]: reason } } })
      .catch((error) => failures.add('patch Node', messageOf(error)))
  const recover = async (name: string) => {
    down.get(name)?.cancel()
    down.delete(name)
    await annotate(name, null)
    well.push(name)
  }
  return {
    next: async () => {
      const at = random.int(well.length)
      const [name] = well.splice(at, 1)
      if (name === undefined || signal.aborted) return
      down.set(
        name,
        clock.timer(downMs, () => void recover(name)),
      )
      await annotate(name, 'skiff simulate load lets this node fail')
    },
    heal: async () => {
      await Promise.all([...down.keys()].map(recover))
    },
  }
}
