/** Adds default tolerations for NotReady and unreachable nodes to pods without any (L3). Upstream: plugin/pkg/admission/defaulttolerationseconds. */
import type { Pod, Toleration } from '#api/gen/types/core.v1'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

/** Seconds of the default tolerations, by taint. */
export interface TolerationSeconds {
  readonly notReady: number
  readonly unreachable: number
}

export const usualTolerationSeconds: TolerationSeconds = { notReady: 300, unreachable: 300 }

export function defaultTolerationSeconds({ notReady, unreachable }: TolerationSeconds): AdmissionPlugin {
  const taints = [
    { key: 'node.kubernetes.io/not-ready', tolerationSeconds: notReady },
    { key: 'node.kubernetes.io/unreachable', tolerationSeconds: unreachable },
  ]
  return {
    name: 'DefaultTolerationSeconds',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit: (attributes) => {
      if (!isResource(attributes, '', 'pods')) return
      const { spec } = objectOf<Pod>(attributes)
      const missing = taints.filter(({ key }) => !spec.tolerations?.some((toleration) => covers(toleration, key)))
      if (missing.length === 0) return
      const added = missing.map(({ key, tolerationSeconds }) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }))
      spec.tolerations = [...(spec.tolerations ?? []), ...added]
    },
  }
}

/** Whether the pod has a toleration for this taint already, with any value. */
function covers(toleration: Toleration, key: string): boolean {
  return (toleration.key === key || !toleration.key) && (toleration.effect === 'NoExecute' || !toleration.effect)
}
