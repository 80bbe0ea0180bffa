/**
 * The identity of a StatefulSet's pods and claims (L3): names, labels, host names and volumes by ordinal. Pure.
 * Upstream: pkg/controller/statefulset/stateful_set_utils.go (v1.36).
 */
import type { ControllerRevision, StatefulSet } from '#api/gen/types/apps.v1'
import type { PersistentVolumeClaim, Pod, PodTemplateSpec } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import type { NewObject } from '#client/client'
import { podFromTemplate } from '../shared/podControl.ts'

export const podRevisionLabel = 'controller-revision-hash'

/** Upstream reads ordinals as 32 bits; a name with more than that has none. */
export const maxOrdinal = 2 ** 31 - 1

/** The ordinal in a pod's name; undefined for a name that is not of this set. */
export function ordinalOf(set: Frozen<StatefulSet>, pod: Frozen<Pod>): number | undefined {
  const { name = '' } = pod.metadata
  const prefix = `${set.metadata.name}-`
  const text = name.startsWith(prefix) ? name.slice(prefix.length) : ''
  const ordinal = /^\d+$/.test(text) ? Number(text) : undefined
  return ordinal === undefined || ordinal > maxOrdinal ? undefined : ordinal
}

export const claimName = (set: Frozen<StatefulSet>, template: string, ordinal: number): string => `${template}-${set.metadata.name}-${ordinal}`

/** What tells a pod's place to Services and to the pod itself. */
export const identityLabels = (name: string, ordinal: number): Record<string, string> => ({
  'statefulset.kubernetes.io/pod-name': name,
  'apps.kubernetes.io/pod-index': String(ordinal),
})

/** An adopted pod may lack the labels. */
export function hasIdentity(set: Frozen<StatefulSet>, pod: Frozen<Pod>): boolean {
  const { name = '', labels } = pod.metadata
  return Object.entries(identityLabels(name, ordinalOf(set, pod) ?? -1)).every(([key, value]) => labels?.[key] === value)
}

/** The pod of an ordinal, from the template that the revision holds. */
export function statefulPod(set: Frozen<StatefulSet>, ordinal: number, revision: Frozen<ControllerRevision>): NewObject<Pod> {
  const template = (revision.data as { spec?: { template?: PodTemplateSpec & { $patch?: string } } } | undefined)?.spec?.template ?? set.spec.template
  const pod = podFromTemplate(template as Frozen<PodTemplateSpec>, set)
  const name = `${set.metadata.name}-${ordinal}`
  const { generateName: _, ...metadata } = pod.metadata
  pod.metadata = {
    ...metadata,
    name,
    labels: {
      ...metadata.labels,
      ...identityLabels(name, ordinal),
      [podRevisionLabel]: revision.metadata.name ?? '',
    },
  }
  pod.spec.hostname = name
  if (set.spec.serviceName) pod.spec.subdomain = set.spec.serviceName
  const claims = (set.spec.volumeClaimTemplates ?? []).map(({ metadata }) => ({
    name: metadata.name ?? '',
    persistentVolumeClaim: { claimName: claimName(set, metadata.name ?? '', ordinal), readOnly: false },
  }))
  const named = new Set(claims.map((volume) => volume.name))
  const volumes = [...claims, ...(pod.spec.volumes ?? []).filter((volume) => !named.has(volume.name))]
  if (volumes.length > 0) pod.spec.volumes = volumes
  return pod
}

/** The claims that the pod of an ordinal mounts. claims.ts decides who owns them. */
export function statefulClaims(set: Frozen<StatefulSet>, ordinal: number): NewObject<PersistentVolumeClaim>[] {
  return (set.spec.volumeClaimTemplates ?? []).map((template) => {
    const labels = { ...template.metadata.labels, ...set.spec.selector.matchLabels }
    const annotations = template.metadata.annotations
    return {
      metadata: {
        namespace: set.metadata.namespace,
        name: claimName(set, template.metadata.name ?? '', ordinal),
        labels,
        ...(annotations ? { annotations: { ...annotations } } : {}),
      },
      spec: deepCopy<PersistentVolumeClaim['spec']>(template.spec),
    }
  })
}
