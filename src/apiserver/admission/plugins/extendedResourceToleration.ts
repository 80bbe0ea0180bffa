/**
 * Adds tolerations for the taints of dedicated device nodes to pods that request such a device (L3). Off by default.
 * Upstream: plugin/pkg/admission/extendedresourcetoleration.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { isExtendedResource } from '#api/kinds/core/pod/validateResources'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

export const extendedResourceToleration: AdmissionPlugin = {
  name: 'ExtendedResourceToleration',
  handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
  admit(attributes) {
    if (!isResource(attributes, '', 'pods')) return
    const { spec } = objectOf<Pod>(attributes)
    const asked = [...spec.containers, ...(spec.initContainers ?? [])].flatMap(({ resources }) => Object.keys(resources?.requests ?? {}))
    const devices = [...new Set(asked)].filter(isExtendedResource).sort()
    const missing = devices.filter(
      (key) => !spec.tolerations?.some((one) => one.key === key && one.operator === 'Exists' && (one.effect ?? '') === 'NoSchedule'),
    )
    if (missing.length === 0) return
    spec.tolerations = [...(spec.tolerations ?? []), ...missing.map((key) => ({ key, operator: 'Exists', effect: 'NoSchedule' }))]
  },
}
