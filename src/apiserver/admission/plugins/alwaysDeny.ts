/** Refuses everything (L3): for tests of clients. Off by default. Upstream: plugin/pkg/admission/deny. */
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { refuse } from '../attributes.ts'

const deny = (attributes: AdmissionAttributes) => {
  throw refuse(attributes, 'admission control is denying all modifications')
}

export const alwaysDeny: AdmissionPlugin = { name: 'AlwaysDeny', handles: () => true, admit: deny, validate: deny }
