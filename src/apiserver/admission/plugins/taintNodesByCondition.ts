/** Adds the taint not-ready to new nodes, until their controller removes it (L3). Upstream: plugin/pkg/admission/nodetaint. */
import type { Node } from '#api/gen/types/core.v1'
import { taintsMatch } from '#api/helpers/taints'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }

export const taintNodesByCondition: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  handles: (operation) => operation === 'CREATE',
  admit: (attributes) => {
    if (!isResource(attributes, '', 'nodes')) return
    const node = objectOf<Node>(attributes)
    node.spec ??= {}
    if (!node.spec.taints?.some((taint) => taintsMatch(taint, notReady))) node.spec.taints = [...(node.spec.taints ?? []), { ...notReady }]
  },
}
