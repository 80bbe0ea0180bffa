/**
 * Keeps pods in the zone and region that their volumes' labels name (L3). Upstream: plugins/volumezone (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { storageClassOf } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { bareMap, ownValue } from '#base/bareMap'
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#client/builtIn'
import { actions, on } from '../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../framework/cycleState.ts'
import { definePlugin } from '../framework/plugin.ts'
import { type Refusal, reasons, unresolvable } from '../framework/status.ts'
import { volumesText } from './volumesText.ts'

const zone = 'topology.kubernetes.io/zone'
const region = 'topology.kubernetes.io/region'
/** Each label with the one that a node may have instead. */
const labels: Readonly<Record<string, string>> = bareMap({
  'failure-domain.beta.kubernetes.io/zone': zone,
  'failure-domain.beta.kubernetes.io/region': region,
  [zone]: zone,
  [region]: region,
})

interface Topology {
  readonly label: string
  readonly values: ReadonlySet<string>
}

interface Topologies extends StateData {
  readonly all: readonly Topology[]
}
const key = stateKey<Topologies>('PreFilterVolumeZone')
const refused = unresolvable(reasons.volumeZone)

export const volumeZone = definePlugin('VolumeZone', (_args, handle) => {
  const claims = handle.lister(persistentVolumeClaims)
  const volumes = handle.lister(persistentVolumes)
  const classes = handle.lister(storageClasses)

  /** Nothing of a claim that waits for its first consumer. */
  const ofUnbound = (claim: Frozen<PersistentVolumeClaim>): Refusal | undefined => {
    const name = storageClassOf(claim)
    if (name === '') return unresolvable('PersistentVolumeClaim had no pv name and storageClass name')
    const found = classes.get({ name })
    if (!found) return unresolvable(reasons.storageClassNotFound(name))
    if (!found.volumeBindingMode) return unresolvable(`VolumeBindingMode not set for StorageClass "${name}"`)
    return found.volumeBindingMode === 'WaitForFirstConsumer' ? undefined : unresolvable('PersistentVolume had no name')
  }
  const topologiesOf = ({ metadata, spec }: Frozen<Pod>): readonly Topology[] | Refusal => {
    const all: Topology[] = []
    for (const { persistentVolumeClaim } of spec.volumes ?? []) {
      if (!persistentVolumeClaim) continue
      const name = persistentVolumeClaim.claimName
      if (name === '') return unresolvable('PersistentVolumeClaim had no name')
      const claim = claims.get({ namespace: metadata.namespace, name })
      if (!claim) return unresolvable(reasons.claimNotFound(name))
      if (claim.spec?.volumeName) {
        const volume = volumes.get({ name: claim.spec.volumeName })
        if (!volume) return unresolvable(reasons.volumeNotFound(claim.spec.volumeName))
        all.push(...topologiesOfVolume(volume))
        continue
      }
      const refusal = ofUnbound(claim)
      if (refusal) return refusal
    }
    return all
  }
  return {
    batchSign: volumesText,
    requeueOn: [
      on('StorageClass', actions.Add, (_pod, { object }) => object?.volumeBindingMode === 'WaitForFirstConsumer'),
      on('Node', actions.Add | actions.UpdateNodeLabel),
      on('PersistentVolumeClaim', actions.Add | actions.Update, ({ metadata, spec }, { object }) => {
        if (object?.metadata.namespace !== metadata.namespace) return false
        return spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === object?.metadata.name) === true
      }),
      on('PersistentVolume', actions.Add | actions.Update, (_pod, { old, object }) => {
        return !old || Object.keys(labels).some((label) => ownValue(old.metadata.labels, label) !== ownValue(object?.metadata.labels, label))
      }),
    ],
    preFilter: (state, { pod }) => {
      const all = topologiesOf(pod)
      if ('code' in all) return all
      if (all.length === 0) return 'skip'
      state.write(key, { all })
      return undefined
    },
    filter: (state, _pod, { node }) => (isInAll(node, state.read(key)?.all ?? []) ? undefined : refused),
  }
})

/** Zones may be several: `a__b`. */
function topologiesOfVolume({ metadata }: Frozen<PersistentVolume>): Topology[] {
  const found: Topology[] = []
  for (const label of Object.keys(labels)) {
    const values = ownValue(metadata.labels, label)
      ?.split('__')
      .map((value) => value.trim())
    // A label with an empty part is ignored.
    if (values?.every((value) => value !== '')) found.push({ label, values: new Set(values) })
  }
  return found
}

/** In a cluster whose nodes have no zone labels no node is refused. */
function isInAll(node: Frozen<Node>, topologies: readonly Topology[]): boolean {
  const own = node.metadata.labels ?? {}
  if (!Object.keys(labels).some((label) => own[label] !== undefined)) return true
  return topologies.every(({ label, values }) => {
    const value = own[label] ?? own[labels[label] as string]
    return value !== undefined && values.has(value)
  })
}
