/** Nothing happens in a namespace that is not there (L3). Off by default: NamespaceLifecycle says so, too. Upstream: plugin/pkg/admission/namespace/exists. */
import { notFound } from '#api/machinery/status'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'

const namespaces = { group: '', resource: 'namespaces' }

export function namespaceExists(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'NamespaceExists',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE',
    validate(attributes) {
      if (needsNamespace(attributes) && !reader.get(namespaces, '', attributes.namespace)) throw notFound(namespaces, attributes.namespace)
    },
  }
}

/** Whether the request is about something in a namespace. */
export function needsNamespace({ namespace, kind }: AdmissionAttributes): boolean {
  return namespace !== '' && !(kind.group === '' && kind.kind === 'Namespace')
}
