/**
 * Writes what type checking finds about validating policies into their status (L3), once for each generation.
 * Upstream: pkg/controller/validatingadmissionpolicystatus (v1.36).
 */
import type { ValidatingAdmissionPolicy } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import { validatingAdmissionPolicies } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { checkTypes } from './typeChecking.ts'
import { createTypeSource } from './typeSource.ts'

const fieldManager = 'validatingadmissionpolicy-status'

export const validatingAdmissionPolicyStatus: ControllerDescriptor = {
  name: 'validatingadmissionpolicy-status-controller',
  aliases: [],
  serviceAccount: 'validatingadmissionpolicy-status-controller',
  create: createStatusController,
}

function createStatusController(context: ControllerContext) {
  const policies = context.informers.of(validatingAdmissionPolicies)
  const client = context.client.of(validatingAdmissionPolicies)
  const source = createTypeSource(context.client.transport)
  const reconciler = createReconciler(context, {
    name: validatingAdmissionPolicyStatus.name,
    queueName: 'validatingadmissionpolicies',
    workers: 5,
    async reconcile(name, signal) {
      const policy = policies.lister.get({ name })
      if (!policy || isChecked(policy)) return undefined
      const expressionWarnings = await checkTypes(policy, source, context.clock)
      const status = { observedGeneration: policy.metadata.generation, typeChecking: { expressionWarnings } }
      const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', metadata: { name }, status }
      await client.patch({ name }, 'apply', body, { subresource: 'status', fieldManager, force: true, signal })
      return undefined
    },
  })
  reconciler.watch(policies, enqueueSelf(reconciler.queue))
  return reconciler
}

function isChecked({ metadata, status }: Frozen<ValidatingAdmissionPolicy>): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0)
}
