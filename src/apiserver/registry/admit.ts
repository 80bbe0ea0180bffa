/**
 * Runs the admission chain around a write (L3): mutating plugins in order, once more when one of them asks for it, later validating plugins
 * in order. What plugins leave in managedFields that nobody can read is put back.
 * Upstream: apiserver/pkg/admission/{chain,reinvocation}.go, pkg/endpoints/handlers/fieldmanager/admission.go.
 */
import { managedFieldsFault } from '#api/machinery/managedFields/entries'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission/admission.ts'

export async function admit(plugins: readonly AdmissionPlugin[], attributes: AdmissionAttributes): Promise<void> {
  const managedFields = attributes.object?.metadata?.managedFields
  await admitOnce(plugins, attributes)
  const { reinvocation } = attributes
  if (reinvocation?.wanted) {
    reinvocation.isSecondRound = true
    await admitOnce(plugins, attributes)
  }
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

async function admitOnce(plugins: readonly AdmissionPlugin[], attributes: AdmissionAttributes): Promise<void> {
  for (const plugin of plugins) {
    if (!plugin.admit || !plugin.handles(attributes.operation)) continue
    const pending = plugin.admit(attributes)
    if (pending) await pending
  }
}

export async function validateAdmission(plugins: readonly AdmissionPlugin[], attributes: AdmissionAttributes): Promise<void> {
  for (const plugin of plugins) {
    if (!plugin.validate || !plugin.handles(attributes.operation)) continue
    const pending = plugin.validate(attributes)
    if (pending) await pending
  }
}

/** A deletion has no object to change, but plugins of both kinds may refuse it. Upstream: rest.AdmissionToValidateObjectDeleteFunc. */
export async function admitDeletion(plugins: readonly AdmissionPlugin[], attributes: AdmissionAttributes): Promise<void> {
  await admit(plugins, attributes)
  await validateAdmission(plugins, attributes)
}
