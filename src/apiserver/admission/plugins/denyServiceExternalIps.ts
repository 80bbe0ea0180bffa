/** Services may not add external IPs; those that have some may only remove them (L3). Off by default. Upstream: plugin/pkg/admission/network/denyserviceexternalips. */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'

export const denyServiceExternalIps: AdmissionPlugin = {
  name: 'DenyServiceExternalIPs',
  handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
  validate(attributes) {
    if (!isResource(attributes, '', 'services')) return
    const wanted = objectOf<Service>(attributes).spec?.externalIPs ?? []
    const had = (attributes.oldObject as Frozen<Service> | undefined)?.spec?.externalIPs ?? []
    if (wanted.some((ip) => !had.includes(ip))) throw refuse(attributes, 'Use of external IPs is denied by admission control')
  },
}
