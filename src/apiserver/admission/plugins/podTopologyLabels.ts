/** Copies the zone and region labels of the node to the pod, for the downward API (L3). Upstream: plugin/pkg/admission/podtopologylabels. */
import type { Binding, Node, Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf } from '../attributes.ts'

const copied = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region']

export function podTopologyLabels(reader: ObjectReader): AdmissionPlugin {
  const copyFrom = (nodeName: string | undefined, { metadata }: KubeObject) => {
    const labels = nodeName ? reader.get<Node>({ group: '', resource: 'nodes' }, '', nodeName)?.metadata.labels : undefined
    const found = copied.flatMap((key): [string, string][] => (labels?.[key] === undefined ? [] : [[key, labels[key]]]))
    if (found.length > 0) metadata.labels = { ...metadata.labels, ...Object.fromEntries(found) }
  }
  return {
    name: 'PodTopologyLabels',
    handles: (operation) => operation === 'CREATE',
    admit(attributes) {
      if (isResource(attributes, '', 'pods')) {
        const pod = objectOf<Pod>(attributes)
        copyFrom(pod.spec.nodeName, pod)
      } else if (isSubresource(attributes, '', 'pods', 'binding')) {
        const binding = objectOf<Binding>(attributes)
        if (binding.target?.kind === 'Node') copyFrom(binding.target.name, binding)
      }
    },
  }
}
