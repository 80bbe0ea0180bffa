/** Refuses requests in a namespace that does not exist (L3). Off by default: NamespaceLifecycle checks it too. Upstream: plugin/pkg/admission/namespace/exists. */
import { notFound } from '#api/machinery/status'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { find, type Lookup, namespaceResource } from '../lookup.ts'

export function namespaceExists(lookup: Lookup): AdmissionPlugin {
  return {
    name: 'NamespaceExists',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE',
    async validate(attributes) {
      if (!needsNamespace(attributes)) return
      if (!(await find(lookup, namespaceResource, '', attributes.namespace))) throw notFound(namespaceResource, attributes.namespace)
    },
  }
}

/** Whether the request's object is namespaced. */
export function needsNamespace({ namespace, kind }: AdmissionAttributes): boolean {
  return namespace !== '' && !(kind.group === '' && kind.kind === 'Namespace')
}
