/**
 * Checks that the author of an admission policy or binding may read its parameters (L3), since messages and mutations show them.
 * Upstream: pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go (v1.36).
 */
import type { ParamKind, ParamRef } from '#api/gen/types/admissionregistration.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { privilegedGroup } from '../authz/privilegedGroup.ts'
import { authorize } from '../authz/union.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { KindStorages } from '../registry/kindStorage.ts'
import type { CheckedWrite, StorageHooks } from '../registry/storedResource.ts'

const group = 'admissionregistration.k8s.io'

type Policy = Frozen<KubeObject & { spec?: { paramKind?: ParamKind } }>
type Binding = Frozen<KubeObject & { spec?: { policyName?: string; paramRef?: ParamRef } }>

const policyHooks: StorageHooks = {
  async checkRights(write) {
    const paramKind = (write.object as Policy).spec?.paramKind
    if (write.subresource !== '' || !paramKind || isSuperuser(write.user) || sameKind(paramKind, (write.old as Policy | undefined)?.spec?.paramKind)) return []
    const { apiVersion = '', kind = '' } = paramKind
    const { problem: _, ...target } = resourceOf(paramKind, write.reader)
    const { allowed, error } = await mayRead(write, { ...target, verb: 'get', namespace: '*', name: '*' })
    if (allowed) return []
    const who = goPrintUser(write.user)
    return refusal(
      'paramKind',
      error ?? `user ${who} must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`,
    )
  },
}

function bindingHooks(policies: string): StorageHooks {
  return {
    async checkRights(write) {
      const { policyName = '', paramRef } = (write.object as Binding).spec ?? {}
      // Upstream checks each update of a binding that has parameters: it compares old and new by the addresses of their parts.
      if (write.subresource !== '' || !paramRef || isSuperuser(write.user)) return []
      const { name = '', namespace = '' } = paramRef
      const verb = name === '' ? 'list' : 'get'
      const { problem, ...target } = parametersOf(policies, policyName, write.reader)
      const { allowed, error } = await mayRead(write, { ...target, verb, namespace, name })
      if (allowed) return []
      if (error !== undefined) return refusal('paramRef', `failed to authorize request: ${error}`)
      const who = goPrintUser(write.user)
      const missing = problem
        ? `unable to ${problem} to determine minimum required permissions and user ${who} does not have "${verb}" permission for all groups, versions and resources`
        : `user ${who} does not have "${verb}" permission on the object referenced by paramRef`
      return refusal('paramRef', missing)
    },
  }
}

export const policyStorages: KindStorages = {
  [`${group}/validatingadmissionpolicies`]: { hooks: policyHooks },
  [`${group}/mutatingadmissionpolicies`]: { hooks: policyHooks },
  [`${group}/validatingadmissionpolicybindings`]: { hooks: bindingHooks('validatingadmissionpolicies') },
  [`${group}/mutatingadmissionpolicybindings`]: { hooks: bindingHooks('mutatingadmissionpolicies') },
}

interface ReadTarget {
  readonly apiGroup: string
  readonly apiVersion: string
  readonly resource: string
}

/** The resources that the author must be able to read if the parameters' resource is unknown. */
const anything: ReadTarget = { apiGroup: '*', apiVersion: '*', resource: '*' }

function resourceOf(paramKind: Frozen<ParamKind>, reader: ObjectReader): ReadTarget & { readonly problem?: string } {
  const { apiVersion = '', kind = '' } = paramKind
  const shown = `paramKind &{${apiVersion} ${kind}}`
  if (apiVersion.split('/').length > 2) return { ...anything, problem: `parse ${shown}` }
  const { group: apiGroup, version } = parseGroupVersion(apiVersion)
  const known = reader.ofKind?.(apiVersion, kind)
  return { apiGroup, apiVersion: version, resource: known?.resource ?? '*', ...(known ? {} : { problem: `resolve ${shown}` }) }
}

function parametersOf(policies: string, policyName: string, reader: ObjectReader): ReadTarget & { readonly problem?: string } {
  const policy = reader.get<KubeObject>({ group, resource: policies }, '', policyName) as Policy | undefined
  if (!policy) return { ...anything, problem: `get policy ${policyName}` }
  const { paramKind } = policy.spec ?? {}
  return paramKind ? resourceOf(paramKind, reader) : anything
}

async function mayRead({ user, authorizers }: CheckedWrite, target: ReadTarget & { verb: string; namespace: string; name: string }) {
  const { decision, error } = await authorize(authorizers, { user, isResourceRequest: true, path: '', subresource: '', ...target })
  return { allowed: decision === 'allow', error }
}

const isSuperuser = ({ groups }: UserInfo): boolean => groups.includes(privilegedGroup)

function sameKind(a: Frozen<ParamKind>, b: Frozen<ParamKind> | undefined): boolean {
  return b !== undefined && a.apiVersion === b.apiVersion && a.kind === b.kind
}

const refusal = (field: string, detail: string): FieldError[] => [fieldError.forbidden(FieldPath.of('spec', field), detail)]

/** A user as Go's %v prints it. */
function goPrintUser({ name, uid = '', groups, extra = {} }: UserInfo): string {
  const entries = Object.entries(extra)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, values]) => `${key}:[${values.join(' ')}]`)
  return `&{${name} ${uid} [${groups.join(' ')}] map[${entries.join(' ')}]}`
}
