/**
 * Pods from manifests (L3, pure): one Pod or a PodList as YAML or JSON becomes pods of this node, with the API's defaults, checked as the API checks them.
 * podSources.ts reads the text. Upstream: kubelet/config/common.go (v1.36).
 */
import { createHash } from 'node:crypto'
import type { Pod } from '#api/gen/types/core.v1'
import { referencedResource } from '#api/helpers/objectReferences'
import { qosClass } from '#api/helpers/podResources'
import { setPodDefaults } from '#api/kinds/core/pod/defaults'
import { validatePodSpec } from '#api/kinds/core/pod/validatePodSpec'
import { FieldPath } from '#api/machinery/fieldPath'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { validateObjectMeta } from '#api/machinery/objectMeta'
import { parseYaml } from '#api/machinery/yaml'
import { formatTime } from '#base/time'
import { configHashAnnotation, configSourceAnnotation } from '../core/containers.ts'
import { isPathComponent } from '../core/podDirectory.ts'

const configSeenAnnotation = 'kubernetes.io/config.seen'

export interface ManifestOrigin {
  readonly source: 'file' | 'http'
  readonly nodeName: string
  readonly nowMs: number
}

/** The pods of a manifest, as the node runs them. @throws Error for text that is none, naming what is wrong */
export function podsOfManifest(text: string, origin: ManifestOrigin): Pod[] {
  const parsed = parseYaml(text) as { kind?: string; apiVersion?: string; items?: Partial<Pod>[] } | null
  if (parsed?.kind === 'PodList' && parsed.apiVersion === 'v1') {
    return (parsed.items ?? []).map((item) => manifestPod({ apiVersion: 'v1', kind: 'Pod', ...item }, JSON.stringify(item), origin))
  }
  return [manifestPod(parsed as Partial<Pod> | null, text, origin)]
}

function manifestPod(manifest: Partial<Pod> | null, text: string, { source, nodeName, nowMs }: ManifestOrigin): Pod {
  if (manifest?.kind !== 'Pod' || manifest.apiVersion !== 'v1' || !manifest.metadata?.name || !manifest.spec?.containers) throw new Error('not a v1 Pod')
  const { metadata, spec } = manifest
  const uid = metadata.uid || createHash('md5').update(text).update(nodeName).digest('hex')
  // A pod from a file tolerates every NoExecute taint.
  const tolerations = source === 'file' ? [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }] : spec.tolerations
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metadata,
      name: `${metadata.name}-${nodeName}`.toLowerCase(),
      namespace: metadata.namespace || 'default',
      uid,
      annotations: {
        ...metadata.annotations,
        [configSourceAnnotation]: source,
        [configHashAnnotation]: uid,
        [configSeenAnnotation]: formatTime(nowMs),
      },
    },
    spec: { ...spec, nodeName, ...(tolerations ? { tolerations } : {}) },
    status: { phase: 'Pending' },
  }
  setPodDefaults(pod)
  pod.status.qosClass = qosClass(pod)
  check(pod)
  return pod
}

/** Static pods have no admission by the API server: fields that it would refuse, or that need it, are refused here. */
function check(pod: Pod): void {
  const metadata = validateObjectMeta(pod.metadata, true, nameIsDnsSubdomain, FieldPath.of('metadata'))
  const faults = [...metadata, ...validatePodSpec(pod.spec, FieldPath.of('spec'))].map(({ field, body }) => `${field}: ${body}`)
  // The API server makes uids; a manifest may hold any text, and a directory is named after it.
  if (!isPathComponent(pod.metadata.uid ?? '')) faults.unshift(`metadata.uid: Invalid value: "${pod.metadata.uid}": must be the name of a directory`)
  if (faults.length > 0) throw new Error(`invalid pod: [${faults.join(', ')}]`)
  const resource = referencedResource(pod)
  if (resource !== undefined) throw new Error(`static pods may not reference ${resource}`)
}
