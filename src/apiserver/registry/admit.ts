/**
 * Mutating admission around a write (L3): if a plugin leaves unreadable managedFields, the earlier ones are restored.
 * Upstream: apiserver/pkg/endpoints/handlers/fieldmanager/admission.go.
 */
import { managedFieldsFault } from '#api/managedFields/decodeClaims'
import type { AdmissionAttributes } from '../admission/admission.ts'
import type { AdmissionChain } from '../admission/chain.ts'

export async function admit(chain: AdmissionChain, attributes: AdmissionAttributes): Promise<void> {
  const managedFields = attributes.object?.metadata?.managedFields
  await chain.admit(attributes)
  const metadata = attributes.object?.metadata
  if (!metadata || metadata.managedFields === managedFields) return
  const fault = managedFieldsFault(metadata.managedFields)
  if (fault === undefined) return
  if (managedFields) metadata.managedFields = managedFields
  else delete metadata.managedFields
  attributes.warn(`${managedFieldsWarning}${fault}`)
}

const managedFieldsWarning =
  '.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: '

/** A deletion has no object to change, but plugins of both kinds may refuse it. Upstream: rest.AdmissionToValidateObjectDeleteFunc. */
export async function admitDeletion(chain: AdmissionChain, attributes: AdmissionAttributes): Promise<void> {
  await admit(chain, attributes)
  await chain.validate(attributes)
}
