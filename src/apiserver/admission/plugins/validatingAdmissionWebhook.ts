/** Calls validating webhooks (L3). Upstream: apiserver/pkg/admission/plugin/webhook/validating (v1.36). */
import type { AdmissionPlugin } from '../admission.ts'
import { configuresAdmission } from '../attributes.ts'
import type { WebhookDeps } from '../webhook/consider.ts'
import { HookIndex, type HookWays } from '../webhook/hookIndex.ts'
import { validateByWebhooks } from '../webhook/validating.ts'

export function validatingAdmissionWebhook(deps: WebhookDeps, ways: HookWays): AdmissionPlugin {
  const index = new HookIndex(deps.reader, { group: 'admissionregistration.k8s.io', resource: 'validatingwebhookconfigurations' }, ways)
  return {
    name: 'ValidatingAdmissionWebhook',
    handles: () => !index.isEmpty,
    validate: (attributes) => (configuresAdmission(attributes) ? undefined : validateByWebhooks(deps, index, attributes)),
  }
}
