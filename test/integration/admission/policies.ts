/** Policies in CEL for tests: made, tried and taken away again. */
import type { AdmissionCluster } from './cluster.ts'

const api = '/apis/admissionregistration.k8s.io/v1'
const apiVersion = 'admissionregistration.k8s.io/v1'
export type PolicyKindName = 'Validating' | 'Mutating'

export interface PolicyTrial {
  readonly spec: object
  readonly binding?: object | undefined
  /** More bindings, by name. */
  readonly bindings?: Readonly<Record<string, object>> | undefined
}

export const onConfigMaps = {
  resourceRules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
  namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system', 'kube-public'] }] },
}

/** Creates policy `name` with binding `<name>-b`, or those given. */
export async function makePolicy(
  { request }: AdmissionCluster,
  kind: PolicyKindName,
  name: string,
  { spec, binding = {}, bindings }: PolicyTrial,
): Promise<void> {
  const plural = `${api}/${kind.toLowerCase()}admissionpolicies`
  const matchConstraints =
    kind === 'Mutating' ? { ...onConfigMaps, resourceRules: [{ ...onConfigMaps.resourceRules[0], operations: ['CREATE', 'UPDATE'] }] } : onConfigMaps
  await request('POST', plural, { apiVersion, kind: `${kind}AdmissionPolicy`, metadata: { name }, spec: { matchConstraints, ...spec } })
  const actions = kind === 'Validating' ? { validationActions: ['Deny'] } : {}
  for (const [bound, more] of Object.entries(bindings ?? { [`${name}-b`]: binding })) {
    const body = { apiVersion, kind: `${kind}AdmissionPolicyBinding`, metadata: { name: bound }, spec: { policyName: name, ...actions, ...more } }
    await request('POST', `${api}/${kind.toLowerCase()}admissionpolicybindings`, body)
  }
}

export async function dropPolicies({ request }: AdmissionCluster, kind: PolicyKindName): Promise<void> {
  await request('DELETE', `${api}/${kind.toLowerCase()}admissionpolicybindings`)
  await request('DELETE', `${api}/${kind.toLowerCase()}admissionpolicies`)
}
