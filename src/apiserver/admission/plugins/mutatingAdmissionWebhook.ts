/** Calls mutating webhooks (L3). Upstream: apiserver/pkg/admission/plugin/webhook/mutating (v1.36). */
import type { AdmissionPlugin } from '../admission.ts'
import { configuresAdmission } from '../attributes.ts'
import type { WebhookDeps } from '../webhook/consider.ts'
import { HookIndex, type HookWays } from '../webhook/hookIndex.ts'
import { mutateByWebhooks } from '../webhook/mutating.ts'

export function mutatingAdmissionWebhook(deps: WebhookDeps, ways: HookWays): AdmissionPlugin {
  const index = new HookIndex(deps.reader, { group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations' }, ways)
  return {
    name: 'MutatingAdmissionWebhook',
    handles: () => !index.isEmpty,
    admit: (attributes) => (configuresAdmission(attributes) ? undefined : mutateByWebhooks(deps, index, attributes)),
  }
}
