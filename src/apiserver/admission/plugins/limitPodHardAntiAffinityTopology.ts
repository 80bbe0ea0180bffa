/** Refuses required anti-affinity with another topology key than the hostname (L3). Off by default. Upstream: plugin/pkg/admission/antiaffinity. */
import type { Pod } from '#api/gen/types/core.v1'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'

const hostname = 'kubernetes.io/hostname'

export const limitPodHardAntiAffinityTopology: AdmissionPlugin = {
  name: 'LimitPodHardAntiAffinityTopology',
  handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
  validate(attributes) {
    if (!isResource(attributes, '', 'pods')) return
    const terms = objectOf<Pod>(attributes).spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
    const wide = terms.find(({ topologyKey }) => topologyKey !== hostname)
    if (!wide) return
    throw refuse(attributes, `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${wide.topologyKey} but only key ${hostname} is allowed`)
  },
}
