/** Finds the pod template in kinds that create pods (L3). Upstream: k8s.io/pod-security-admission/admission/admission.go DefaultPodSpecExtractor. */
import type { Pod, PodTemplateSpec } from '#api/gen/types/core.v1'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'

type PodLike = Pick<Frozen<PodTemplateSpec>, 'metadata' | 'spec'>

interface WithTemplate {
  readonly template?: Frozen<PodTemplateSpec>
  readonly spec?: { readonly template?: Frozen<PodTemplateSpec>; readonly jobTemplate?: { readonly spec?: { readonly template?: Frozen<PodTemplateSpec> } } }
}

const groupOf: Readonly<Record<string, string>> = bareMap({
  pods: '',
  replicationcontrollers: '',
  podtemplates: '',
  replicasets: 'apps',
  deployments: 'apps',
  statefulsets: 'apps',
  daemonsets: 'apps',
  jobs: 'batch',
  cronjobs: 'batch',
})

export function hasPodTemplate({ group, resource }: GroupResource): boolean {
  return groupOf[resource] === group
}

/** The pod, or the pod template of a workload; undefined for other objects. */
export function podLikeOf({ resource }: GroupResource, object: KubeObject | Frozen<KubeObject>): PodLike | undefined {
  if (resource === 'pods') return object as Frozen<Pod>
  const { template, spec } = object as WithTemplate
  return resource === 'podtemplates' ? template : resource === 'cronjobs' ? spec?.jobTemplate?.spec?.template : spec?.template
}
