/**
 * Fields of pods that belong to features which v1.36 has off by default (L1): a write forgets them, unless the feature is on here, or the object had
 * something of it before.
 * Whether what is left is right is the validation's question.
 * Upstream: DropDisabledPodFields and DropDisabledTemplateFields of pkg/api/pod/util.go, pkg/features/kube_features.go (v1.36).
 */
import type { Container, EphemeralContainer, Pod, PodSpec, PodTemplateSpec, VolumeProjection } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { featureEnabled } from '#base/featureGates'
import type { StrategyContext } from '../../defineKind.ts'

interface DisabledFeature {
  /** The feature is built in, and its gate turns it on. */
  readonly turnable?: true
  isUsed(spec: Frozen<PodSpec>): boolean
  drop(spec: PodSpec): void
}

/** By the names of their gates. */
const disabled: Readonly<Record<string, DisabledFeature>> = {
  ClusterTrustBundleProjection: projection('clusterTrustBundle'),
  PodCertificateRequest: projection('podCertificate'),
  GenericWorkload: {
    isUsed: ({ schedulingGroup }) => schedulingGroup !== undefined,
    drop(spec) {
      delete spec.schedulingGroup
    },
  },
  ContainerStopSignals: {
    isUsed: (spec) => containersOf(spec).some(({ lifecycle }) => lifecycle?.stopSignal !== undefined),
    drop(spec) {
      for (const container of containersOf(spec)) {
        if (container.lifecycle?.stopSignal === undefined) continue
        delete container.lifecycle.stopSignal
        if (Object.keys(container.lifecycle).length === 0) delete container.lifecycle
      }
    },
  },
}

function projection(source: 'clusterTrustBundle' | 'podCertificate'): DisabledFeature {
  return {
    turnable: true,
    isUsed: (spec) => projectionsOf(spec).some((one) => one[source] !== undefined),
    drop(spec) {
      for (const one of projectionsOf(spec)) delete one[source]
    },
  }
}

function projectionsOf<S extends Frozen<PodSpec> | PodSpec>(spec: S): readonly (S extends PodSpec ? VolumeProjection : Frozen<VolumeProjection>)[]
function projectionsOf(spec: PodSpec): readonly VolumeProjection[] {
  return (spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? [])
}

type AnyContainer = Container | EphemeralContainer

function containersOf<S extends Frozen<PodSpec> | PodSpec>(spec: S): readonly (S extends PodSpec ? AnyContainer : Frozen<AnyContainer>)[]
function containersOf(spec: PodSpec): readonly AnyContainer[] {
  return [...(spec.containers ?? []), ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])]
}

type Gates = Pick<StrategyContext, 'featureGates'>

/** @param old the spec before an update */
export function dropDisabledFields(spec: PodSpec | undefined, { featureGates = {} }: Gates, old?: Frozen<PodSpec>): void {
  if (!spec) return
  for (const [gate, { turnable, isUsed, drop }] of Object.entries(disabled)) {
    const isOn = turnable && featureEnabled(featureGates, gate)
    if (!isOn && !(old && isUsed(old))) drop(spec)
  }
}

/** @param old the template before an update */
export function dropDisabledTemplateFields(template: PodTemplateSpec | undefined, gates: Gates, old?: Frozen<PodTemplateSpec>): void {
  dropDisabledFields(template?.spec, gates, old?.spec)
}

/** Node resources that are counted for devices need the gate DRANodeAllocatableResources. */
export function dropDisabledStatusFields({ status }: Pod, old?: Frozen<Pod>): void {
  if (!old?.status?.nodeAllocatableResourceClaimStatuses) delete status?.nodeAllocatableResourceClaimStatuses
}
