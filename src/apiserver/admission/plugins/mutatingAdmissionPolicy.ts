/** Applies the mutations of policies in CEL (L3). Upstream: apiserver/pkg/admission/plugin/policy/mutating (v1.36). */
import type { AdmissionPlugin } from '../admission.ts'
import { isPolicyExempt } from '../attributes.ts'
import type { PolicyDeps } from '../policy/invocations.ts'
import { type MutatingPolicyIndex, mutateByPolicies, mutatingPolicies } from '../policy/mutating.ts'
import { PolicyIndex } from '../policy/policyIndex.ts'

export function mutatingAdmissionPolicy(deps: PolicyDeps): AdmissionPlugin {
  const index: MutatingPolicyIndex = new PolicyIndex(deps.reader, mutatingPolicies)
  return {
    name: 'MutatingAdmissionPolicy',
    // A deletion has no object to change.
    handles: (operation) => operation !== 'DELETE' && !index.isEmpty,
    admit: (attributes) => (isPolicyExempt(attributes) ? undefined : mutateByPolicies(deps, index, attributes)),
  }
}
