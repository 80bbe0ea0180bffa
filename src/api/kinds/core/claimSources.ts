/**
 * The two fields for a claim's data source (L1): dataSource, which drops everything but claims and snapshots, and dataSourceRef, which
 * accepts any kind. Setting one field sets both. validateClaim checks whether the source is allowed.
 * Upstream: pkg/api/persistentvolumeclaim (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

type Spec = PersistentVolumeClaim['spec']

/** What a write makes of the sources it names. @param old the claim's spec before an update */
export function settleDataSources(spec: Spec, old?: Frozen<Spec>): void {
  // Sources in other namespaces need a feature gate that is off.
  if (spec.dataSourceRef?.namespace && !old?.dataSourceRef) delete spec.dataSourceRef
  // A claim keeps its source when a client that knows only one of the two fields sends it back.
  const had = old?.dataSource || old?.dataSourceRef
  if (!had && !spec.dataSourceRef && !isClaimOrSnapshot(spec.dataSource)) delete spec.dataSource
  mirrorDataSources(spec)
}

/** Fills the missing field from the other; a source in another namespace exists only in dataSourceRef. */
export function mirrorDataSources(spec: Spec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource && !dataSourceRef) spec.dataSourceRef = { ...dataSource }
  else if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { namespace: _, ...local } = dataSourceRef
    spec.dataSource = local
  }
}

function isClaimOrSnapshot(source: Spec['dataSource']): boolean {
  if (source?.kind === 'PersistentVolumeClaim') return !source.apiGroup
  return source?.kind === 'VolumeSnapshot' && source.apiGroup === 'snapshot.storage.k8s.io'
}
