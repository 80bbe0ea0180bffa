/** Pods leave a node that is not ready or unreachable after five minutes, unless they say otherwise (L3). Upstream: plugin/pkg/admission/defaulttolerationseconds. */
import type { Pod, Toleration } from '#api/gen/types/core.v1'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

const taintKeys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const
const seconds = 300

export const defaultTolerationSeconds: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
  admit: (attributes) => {
    if (!isResource(attributes, '', 'pods')) return
    const { spec } = objectOf<Pod>(attributes)
    const missing = taintKeys.filter((key) => !spec.tolerations?.some((toleration) => covers(toleration, key)))
    if (missing.length === 0) return
    const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds }))
    spec.tolerations = [...(spec.tolerations ?? []), ...added]
  },
}

/** The toleration speaks of this taint, whatever its value: the pod's author has decided. */
function covers(toleration: Toleration, key: string): boolean {
  return (toleration.key === key || !toleration.key) && (toleration.effect === 'NoExecute' || !toleration.effect)
}
