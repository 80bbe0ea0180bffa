/**
 * Warns the creator of a NetworkPolicy that no node enforces it (L3): all nodes are simulated, so their pods have no network. Upstream does not know what its
 * network plugin does, and gives no warning. It is no plugin of upstream's, so no flag turns it off.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { ObjectReader } from '../core/objectReader.ts'
import type { AdmissionPlugin } from './admission.ts'
import { isResource } from './attributes.ts'

export function policyEnforcement(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'NetworkPolicyEnforcement',
    handles: (operation) => operation === 'CREATE',
    validate(attributes) {
      if (!isResource(attributes, 'networking.k8s.io', 'networkpolicies')) return
      const nodes = reader.list<Node>({ group: '', resource: 'nodes' })
      const isSimulated = ({ status }: (typeof nodes)[number]) => status?.nodeInfo?.containerRuntimeVersion?.startsWith('simulated://') ?? false
      // Nodes may still be added to a cluster without any.
      if (nodes.length > 0 && nodes.every(isSimulated)) attributes.warn('network policies are not enforced in this cluster: all its nodes are simulated')
    },
  }
}
