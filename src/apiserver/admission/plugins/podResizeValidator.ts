/** Refuses a resize beyond the node's allocatable resources, or on other systems than Linux (L3). Upstream: plugin/pkg/admission/podresize. */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { podRequests, resourceAmount } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isSubresource, objectOf, refuse } from '../attributes.ts'

export function podResizeValidator(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'PodResizeValidator',
    handles: (operation) => operation === 'UPDATE',
    validate(attributes) {
      if (!isSubresource(attributes, '', 'pods', 'resize')) return
      const pod = objectOf<Pod>(attributes)
      const { nodeName } = pod.spec
      if (!nodeName || attributes.oldObject?.metadata.generation === pod.metadata.generation) return
      const node = reader.get<Node>({ group: '', resource: 'nodes' }, '', nodeName)
      if (!node) throw refuse(attributes, `node "${nodeName}" not found`)
      const faults = shortages(pod, node)
      if (faults.length > 0) throw refuse(attributes, `Node didn't have enough allocatable resources: ${faults.join('; ')}`)
      const system = node.metadata.labels?.['kubernetes.io/os'] ?? ''
      if (system !== 'linux') throw refuse(attributes, `pod resize is only supported on linux nodes, node "${nodeName}" is "${system}"`)
    },
  }
}

function shortages(pod: Frozen<Pod>, node: Frozen<Node>): readonly string[] {
  const requests = podRequests(pod)
  return ['cpu', 'memory'].flatMap((name) => {
    const requested = requests[name] ?? 0
    const allocatable = resourceAmount(name, node.status?.allocatable?.[name] ?? '0')
    return requested > allocatable ? [`${name}, requested: ${requested}, allocatable: ${allocatable}`] : []
  })
}
