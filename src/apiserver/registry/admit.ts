/** Runs the admission chain around a write (L3): mutating plugins in order, later validating plugins in order. */
import type { AdmissionAttributes, AdmissionPlugin } from '../admission/admission.ts'

export async function admit(plugins: readonly AdmissionPlugin[], attributes: AdmissionAttributes): Promise<void> {
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
