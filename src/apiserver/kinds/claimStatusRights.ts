/**
 * Checks the rights beyond resourceclaims/status that a change of a claim's status needs (L3): to bind the claim, and to report each driver's devices.
 * Upstream: AuthorizedForBinding and AuthorizedForDeviceStatus of pkg/registry/resource/utils.go (DRAResourceClaimGranularStatusAuthorization, v1.36).
 */
import type { AllocatedDeviceStatus, AllocationResult, ResourceClaim } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { splitServiceAccountName } from '../authn/serviceAccountUser.ts'
import type { AuthorizationAttributes } from '../authz/authorizer.ts'
import { forbiddenError } from '../authz/forbidden.ts'
import { authorize } from '../authz/union.ts'
import type { UserInfo } from '../core/request.ts'
import type { KindStorage } from '../registry/kindStorage.ts'
import type { CheckedWrite } from '../registry/storedResource.ts'

type Status = NonNullable<Frozen<ResourceClaim>['status']>

export const claimStorage: KindStorage = { hooks: { checkRights } }

async function checkRights(write: CheckedWrite): Promise<FieldError[]> {
  if (write.subresource !== 'status') return []
  const now = (write.object as Frozen<ResourceClaim>).status ?? {}
  const before = (write.old as Frozen<ResourceClaim> | undefined)?.status ?? {}
  return [...(await bindingFaults(write, now, before)), ...(await deviceFaults(write, now, before))]
}

async function bindingFaults(write: CheckedWrite, now: Status, before: Status): Promise<FieldError[]> {
  if (semanticEqual(now.allocation, before.allocation) && semanticEqual(now.reservedFor ?? [], before.reservedFor ?? [])) return []
  const refusal = await refusalOf(write, { subresource: 'binding', verb: write.verb, namespace: '', name: '' })
  if (refusal === undefined) return []
  const needed = `resource="resourceclaims/binding", verb="${write.verb}" permission`
  return [fieldError.forbidden(FieldPath.of('status', 'allocation'), `changing status.allocation or status.reservedFor requires ${needed}: ${refusal}`)]
}

async function deviceFaults(write: CheckedWrite, now: Status, before: Status): Promise<FieldError[]> {
  // Without an allocation no report is left: the server itself drops them, and giving up an allocation takes the right to bind.
  if (!now.allocation) return []
  const drivers = changedDrivers(now.devices ?? [], before.devices ?? [])
  const isOnNode = runsOn(write.user, nodeOf(now.allocation))
  const verbs = (isOnNode ? ['associated-node', 'arbitrary-node'] : ['arbitrary-node']).map((prefix) => `${prefix}:${write.verb}`)
  const faults: FieldError[] = []
  for (const name of drivers) {
    const refusal = await refusalOfAll(write, verbs, name)
    if (refusal === undefined) continue
    const needed = `resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission`
    faults.push(fieldError.forbidden(FieldPath.of('status', 'devices'), `changing status.devices requires ${needed}: ${refusal}`))
  }
  return faults
}

/** Undefined when one of the verbs is allowed; otherwise the refusal of the first. */
async function refusalOfAll(write: CheckedWrite, verbs: readonly string[], name: string): Promise<string | undefined> {
  let first: string | undefined
  for (const verb of verbs) {
    const refusal = await refusalOf(write, { subresource: 'driver', verb, namespace: write.object.metadata.namespace ?? '', name })
    if (refusal === undefined) return undefined
    first ??= refusal
  }
  return first
}

type Asked = Pick<AuthorizationAttributes, 'subresource' | 'verb' | 'namespace' | 'name'>

/** Undefined when it is allowed. */
async function refusalOf({ user, authorizers, version }: CheckedWrite, asked: Asked): Promise<string | undefined> {
  const claims = { apiGroup: 'resource.k8s.io', apiVersion: version, resource: 'resourceclaims' }
  const attributes = { user, isResourceRequest: true, path: '', ...claims, ...asked }
  const { decision, reason, error } = await authorize(authorizers, attributes)
  if (decision === 'allow') return undefined
  return forbiddenError(attributes, [error ?? '', reason].filter((text) => text !== '').join(': ')).message
}

/** The drivers whose devices were added, removed or changed, in order. */
function changedDrivers(now: readonly Frozen<AllocatedDeviceStatus>[], before: readonly Frozen<AllocatedDeviceStatus>[]): readonly string[] {
  const keyOf = ({ driver, pool, device, shareID = '' }: Frozen<AllocatedDeviceStatus>) => JSON.stringify([driver, pool, device, shareID])
  const left = new Map(before.map((one) => [keyOf(one), one]))
  const drivers = new Set<string>()
  for (const one of now) {
    const old = left.get(keyOf(one))
    left.delete(keyOf(one))
    if (!old || !semanticEqual(old, one)) drivers.add(one.driver)
  }
  for (const { driver } of left.values()) drivers.add(driver)
  return [...drivers].sort()
}

/** The one node that an allocation is for; undefined when it is for several or for all. */
function nodeOf(allocation: Frozen<AllocationResult> | undefined): string | undefined {
  const [term, ...others] = allocation?.nodeSelector?.nodeSelectorTerms ?? []
  if (!term || others.length > 0 || term.matchExpressions?.length) return undefined
  const [field, ...more] = term.matchFields ?? []
  if (!field || more.length > 0 || field.key !== 'metadata.name' || field.operator !== 'In' || field.values?.length !== 1) return undefined
  return field.values[0]
}

/** Whether a service account's token is of a pod on the node. */
function runsOn({ name, extra }: UserInfo, node: string | undefined): boolean {
  const names = extra?.['authentication.kubernetes.io/node-name'] ?? []
  if (node === undefined || names.length !== 1 || names[0] !== node || !splitServiceAccountName(name)) return false
  return nameIsDnsSubdomain(node, false).length === 0
}
