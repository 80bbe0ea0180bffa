/** Evaluates validating policies in CEL (L3). Upstream: apiserver/pkg/admission/plugin/policy/validating (v1.36). */
import type { AdmissionPlugin } from '../admission.ts'
import { isPolicyExempt } from '../attributes.ts'
import type { PolicyDeps } from '../policy/invocations.ts'
import { PolicyIndex } from '../policy/policyIndex.ts'
import { type ValidatingPolicyIndex, validateByPolicies, validatingPolicies } from '../policy/validating.ts'

export function validatingAdmissionPolicy(deps: PolicyDeps): AdmissionPlugin {
  const index: ValidatingPolicyIndex = new PolicyIndex(deps.reader, validatingPolicies)
  return {
    name: 'ValidatingAdmissionPolicy',
    handles: () => !index.isEmpty,
    validate: (attributes) => (isPolicyExempt(attributes) ? undefined : validateByPolicies(deps, index, attributes)),
  }
}
