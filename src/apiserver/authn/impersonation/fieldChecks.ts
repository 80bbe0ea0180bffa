/**
 * Authorizes each field of the impersonated user (L3): name, uid, groups, extra values.
 * Upstream: impersonationModeState of apiserver/pkg/endpoints/filters/impersonation/mode.go (v1.36).
 */
import { FieldPath } from '#api/machinery/fieldPath'
import { validateDomainPrefixedPath } from '#api/machinery/formats'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import type { AuthorizationAttributes } from '../../authz/authorizer.ts'
import { forbiddenError } from '../../authz/forbidden.ts'
import { aggregateReasons } from '../../core/reasons.ts'
import type { UserInfo } from '../../core/request.ts'
import { serviceAccountGroups, splitServiceAccountName } from '../serviceAccountUser.ts'
import { asUser, type WantedUser } from './wantedUser.ts'

/** @throws Status Forbidden when it is not allowed */
export type Allow = (attributes: AuthorizationAttributes) => Promise<void>

export interface FieldCheckOptions {
  readonly verb: string
  /** True for the constrained modes, which v1.35 added; false for legacy impersonation, whose behaviour does not change. */
  readonly isConstrained: boolean
  readonly allow: Allow
}

const authentication = { apiGroup: 'authentication.k8s.io', apiVersion: 'v1' }
const core = { apiGroup: '', apiVersion: 'v1' }
/** From this many groups or values on, the permission for all (`*`) is checked first. */
const many = 4

/** The user with implied groups. @throws Status Forbidden */
export async function checkFields(options: FieldCheckOptions, wanted: WantedUser, requestor: UserInfo): Promise<UserInfo> {
  const impliedGroups = await checkName(options, wanted, requestor)
  if (wanted.uid !== '') await options.allow(attributesOf(options, requestor, { ...authentication, resource: 'uids', name: wanted.uid }))
  await checkGroups(options, wanted.groups, requestor)
  await checkExtra(options, wanted.extra, requestor)
  return asUser(wanted, impliedGroups)
}

function attributesOf({ verb }: FieldCheckOptions, user: UserInfo, what: Partial<AuthorizationAttributes>): AuthorizationAttributes {
  return { user, verb, isResourceRequest: true, path: '', namespace: '', apiGroup: '', apiVersion: '', resource: '', subresource: '', name: '', ...what }
}

const ofNamesAndGroups = ({ isConstrained }: FieldCheckOptions) => (isConstrained ? authentication : core)

/** The node in a user's name; undefined for other names. */
export function nodeOfName(name: string): string | undefined {
  const node = name.startsWith('system:node:') ? name.slice('system:node:'.length) : ''
  return node !== '' && nameIsDnsSubdomain(node, false).length === 0 ? node : undefined
}

/** @returns the groups that the name implies, or the requested ones */
async function checkName(options: FieldCheckOptions, { name, groups }: WantedUser, requestor: UserInfo): Promise<readonly string[]> {
  const what = ofNamesAndGroups(options)
  const account = splitServiceAccountName(name)
  if (account) {
    await options.allow(attributesOf(options, requestor, { ...what, resource: 'serviceaccounts', ...account }))
    return groups.length === 0 ? serviceAccountGroups(account.namespace) : groups
  }
  const node = options.isConstrained ? nodeOfName(name) : undefined
  if (node) {
    await options.allow(attributesOf(options, requestor, { ...what, resource: 'nodes', name: node }))
    return ['system:nodes']
  }
  await options.allow(attributesOf(options, requestor, { ...what, resource: 'users', name }))
  return groups
}

async function checkGroups(options: FieldCheckOptions, groups: readonly string[], requestor: UserInfo): Promise<void> {
  const of = (name: string) => attributesOf(options, requestor, { ...ofNamesAndGroups(options), resource: 'groups', name })
  if (options.isConstrained) {
    if (groups.includes('')) throw forbiddenError(of(''), 'impersonating the empty string group is not allowed')
    if (groups.includes('system:masters')) throw forbiddenError(of('system:masters'), 'impersonating the system:masters group is not allowed')
    if (groups.length >= many && (await isAllowed(options, of('*')))) return
  }
  for (const group of groups) await options.allow(of(group))
}

async function checkExtra(options: FieldCheckOptions, extra: WantedUser['extra'], requestor: UserInfo): Promise<void> {
  const of = (subresource: string, name: string) => attributesOf(options, requestor, { ...authentication, resource: 'userextras', subresource, name })
  const entries = Object.entries(extra)
  if (options.isConstrained) {
    const fault = entries.map(([key, values]) => extraFault(key, values)).find((one) => one !== undefined)
    if (fault) throw forbiddenError(of('', ''), fault)
    const count = entries.reduce((sum, [, values]) => sum + values.length, 0)
    if (Math.max(count, entries.length) >= many && (await isAllowed(options, of('*', '*')))) return
  }
  for (const [key, values] of entries) for (const value of values) await options.allow(of(key, value))
}

function isAllowed({ allow }: FieldCheckOptions, attributes: AuthorizationAttributes): Promise<boolean> {
  return allow(attributes).then(
    () => true,
    () => false,
  )
}

function extraFault(key: string, values: readonly string[]): string | undefined {
  if (key === '') return 'impersonating the empty string key in extra is not allowed'
  const faults = validateDomainPrefixedPath(key, FieldPath.of('extra', 'key'))
  if (faults.length > 0)
    return `impersonating an invalid key in extra is not allowed: ${aggregateReasons(faults.map(({ field, body }) => `${field}: ${body}`))}`
  if (key !== key.toLowerCase()) return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`
  if (values.length === 0) return 'impersonating empty values in extra is not allowed'
  return values.includes('') ? 'impersonating the empty string value in extra is not allowed' : undefined
}
