/** Creates the namespace of a created object (L3). Off by default. Upstream: plugin/pkg/admission/namespace/autoprovision. */
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { refuse } from '../attributes.ts'
import { needsNamespace } from './namespaceExists.ts'

const namespaces = { group: '', resource: 'namespaces' }

/** @param transport the server's in-process transport; undefined while it starts */
export function namespaceAutoProvision(reader: ObjectReader, transport: () => Transport | undefined): AdmissionPlugin {
  return {
    name: 'NamespaceAutoProvision',
    handles: (operation) => operation === 'CREATE',
    async admit(attributes) {
      const { namespace, dryRun } = attributes
      if (dryRun || !needsNamespace(attributes) || reader.get(namespaces, '', namespace)) return
      const own = transport()
      if (!own) throw refuse(attributes, 'not yet ready to handle request')
      try {
        await own.request({ method: 'POST', path: '/api/v1/namespaces', body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } } })
      } catch (error) {
        if (!isStatus(error, 'AlreadyExists')) throw refuse(attributes, (error as Error).message)
      }
    },
  }
}
