/**
 * What CEL sees in admission (L1): the variables of match conditions and policies and their types. Objects and parameters are of any shape;
 * the request and the namespace have fields that are known, so that a misspelt one is a fault when the expression is written.
 * Upstream: apiserver/pkg/admission/plugin/cel/compile.go (v1.36).
 */
import type { Environment } from '#cel/environment'
import { boolType, type CelType, dynType, intType, listType, mapType, type ObjectType, objectType, stringType, timestampType } from '#cel/types'
import { authorizerType, resourceCheckType } from './authz.ts'
import { kubernetesEnvironment } from './environment.ts'
import { mutationEnvironment } from './mutation.ts'

/** The most that all match conditions of one webhook or policy may cost together for one request. */
export const matchConditionsCostBudget = 2_500_000

/** The longest text that a message expression may give, in bytes. */
export const maxMessageBytes = 5 * 1024

const strings = listType(stringType)
const stringMap = mapType(stringType, stringType)

const kindType = objectType('kubernetes.GroupVersionKind', { group: stringType, version: stringType, kind: stringType })
const resourceType = objectType('kubernetes.GroupVersionResource', { group: stringType, version: stringType, resource: stringType })
const userInfoType = objectType('kubernetes.UserInfo', { username: stringType, uid: stringType, groups: strings, extra: mapType(stringType, strings) })

export const requestType = objectType('kubernetes.AdmissionRequest', {
  kind: kindType,
  resource: resourceType,
  subResource: stringType,
  requestKind: kindType,
  requestResource: resourceType,
  requestSubResource: stringType,
  name: stringType,
  namespace: stringType,
  operation: stringType,
  userInfo: userInfoType,
  dryRun: boolType,
  options: dynType,
})

const namespaceMetadataType = objectType('kubernetes.NamespaceMetadata', {
  name: stringType,
  generateName: stringType,
  namespace: stringType,
  labels: stringMap,
  annotations: stringMap,
  UID: stringType,
  creationTimestamp: timestampType,
  deletionGracePeriodSeconds: intType,
  deletionTimestamp: timestampType,
  generation: intType,
  resourceVersion: stringType,
  finalizers: strings,
})
const namespaceConditionType = objectType('kubernetes.NamespaceCondition', {
  status: stringType,
  type: stringType,
  lastTransitionTime: timestampType,
  message: stringType,
  reason: stringType,
})

export const namespaceType = objectType('kubernetes.Namespace', {
  metadata: namespaceMetadataType,
  spec: objectType('kubernetes.NamespaceSpec', { finalizers: strings }),
  status: objectType('kubernetes.NamespaceStatus', { conditions: listType(namespaceConditionType), phase: stringType }),
})

export interface AdmissionVariables {
  readonly hasParams: boolean
  readonly hasAuthorizer: boolean
  /** Whether objects and JSON patches can be made. */
  readonly hasPatchTypes?: boolean | undefined
  /** The type of `variables`; absent: there are none. */
  readonly variables?: ObjectType | undefined
  /** Types of `object` and `oldObject`, and of `params`, where they are known; default: any. */
  readonly object?: CelType | undefined
  readonly params?: CelType | undefined
}

export function admissionEnvironment(given: AdmissionVariables): Environment {
  const { hasParams, hasAuthorizer, hasPatchTypes, variables, object = dynType, params = dynType } = given
  return (hasPatchTypes ? mutationEnvironment : kubernetesEnvironment).extend({
    types: [requestType, namespaceType],
    variables: {
      object,
      oldObject: object,
      namespaceObject: namespaceType,
      request: requestType,
      ...(hasParams ? { params } : {}),
      ...(hasAuthorizer ? { authorizer: authorizerType, 'authorizer.requestResource': resourceCheckType } : {}),
      ...(variables ? { variables } : {}),
    },
  })
}
