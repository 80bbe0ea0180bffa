/** Helpers of admission plugins for attributes (L3). */
import type { KubeObject } from '#api/machinery/meta'
import { forbidden, StatusError } from '#api/machinery/status'
import type { AdmissionAttributes } from './admission.ts'

/** True for the resource itself, not for a subresource of it. */
export function isResource(attributes: AdmissionAttributes, group: string, resource: string): boolean {
  return attributes.subresource === '' && attributes.resource.group === group && attributes.resource.resource === resource
}

export function isSubresource(attributes: AdmissionAttributes, group: string, resource: string, subresource: string): boolean {
  return attributes.subresource === subresource && attributes.resource.group === group && attributes.resource.resource === resource
}

/** The request's namespace for rules and reviews; for a Namespace, its own name. */
export function requestNamespace(attributes: AdmissionAttributes): string {
  const { namespace, resource, name, object } = attributes
  return namespace === '' && resource.group === '' && resource.resource === 'namespaces' ? name || (object?.metadata?.name ?? '') : namespace
}

/** The object under admission, typed; only after a check of the resource. */
export function objectOf<T extends KubeObject>(attributes: AdmissionAttributes): T {
  if (!attributes.object) throw new Error(`${attributes.operation} of ${attributes.resource.resource} carries no object`)
  return attributes.object as T
}

/** A plugin's refusal: 403 with the object's name. Upstream: admission.NewForbidden. */
export function refuse(attributes: AdmissionAttributes, why: string): StatusError {
  const name = attributes.name || attributes.object?.metadata.name || attributes.object?.metadata.generateName || ''
  return forbidden(attributes.resource, name || 'Unknown', why)
}

/** An error that upstream's plugins return without wrapping it as Forbidden: it gets the code of any other error. */
export function plainError(why: string): StatusError {
  return new StatusError('', why, { code: 500 })
}

const configuringKinds: ReadonlySet<string> = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
])

/** Whether the object configures webhooks or policies. No webhook admits such objects, because then a broken webhook could block its own removal. */
export function configuresAdmission({ kind }: AdmissionAttributes): boolean {
  return kind.group === 'admissionregistration.k8s.io' && configuringKinds.has(kind.kind)
}

const policyResources: ReadonlySet<string> = new Set([
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
])
const reviewResources: ReadonlySet<string> = new Set([
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
])

/** Policies do not apply to admission configurations, nor to access and token reviews. Upstream: kubeapiserver/admission/exclusion. */
export function isPolicyExempt({ resource }: AdmissionAttributes): boolean {
  if (resource.group === 'admissionregistration.k8s.io') return policyResources.has(resource.resource)
  return reviewResources.has(`${resource.group}/${resource.resource}`)
}
