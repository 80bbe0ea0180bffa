/** Faults in a cluster of simulated nodes (L4, X10): what is in force with its undo, nodes that fail, zones that are cordoned, and pods that crash or are deleted. */
import { type FaultyNode, type FaultyPod, faultLabel, simulatedNodes } from '../../../model/chaos.ts'
import { listPath } from '../../../model/places.ts'
import { type ListedObject, useLiveObjects } from '../../live.ts'
import { Empty, Failure, Loading } from '../../parts/basics.tsx'
import { isStill } from '../../session.ts'
import { clusterClock, namespace } from '../../state.ts'
import { ClockPanel } from './clock.tsx'
import { InForce } from './inForce.tsx'
import { NodeFaults } from './nodeFaults.tsx'
import { PodFaults } from './podFaults.tsx'
import { nodeKind, podKind } from './requests.ts'

export function ChaosView() {
  return isStill() ? <Empty title="Faults need a running cluster: this is a bundle, which nothing changes" /> : <Chaos />
}

function Chaos() {
  const nodes = useLiveObjects<FaultyNode & ListedObject>(`${listPath(nodeKind)}?${new URLSearchParams({ labelSelector: simulatedNodes })}`)
  const pods = useLiveObjects<FaultyPod & ListedObject>(`${listPath(podKind, namespace.value)}?${new URLSearchParams({ labelSelector: faultLabel })}`)
  const all = [...nodes.items.value.values()].sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1))
  if (nodes.state.value === 'failed') return <Failure text={nodes.error.value} />
  if (nodes.state.value === 'loading') return <Loading />
  if (all.length === 0)
    return (
      <Empty title="The cluster has no simulated nodes">
        <p>Faults are made on simulated nodes and their pods alone: skiff up --simulated-nodes adds some.</p>
      </Empty>
    )
  return (
    <section class="chaos">
      <header class="bar">
        <h1>Chaos</h1>
        <span class="quiet">faults on purpose, on simulated nodes and their pods, with your rights</span>
      </header>
      {clusterClock.value && <ClockPanel clock={clusterClock.value} />}
      <InForce nodes={all} pods={[...pods.items.value.values()]} error={pods.state.value === 'failed' ? pods.error.value : ''} />
      <PodFaults />
      <NodeFaults nodes={all} />
    </section>
  )
}
