/**
 * Lets a user act as another, when they may (L3): each impersonated user, group, uid and extra value is authorized by itself.
 * Upstream: apiserver/pkg/endpoints/filters/impersonation.
 */
import { badRequest } from '#api/machinery/status'
import type { AuthorizationAttributes, Authorizer } from '../authz/authorizer.ts'
import type { ServerRequest, UserInfo } from '../request.ts'
import { authorize, forbiddenError } from './authorization.ts'
import { decided, type Handler, type Stage } from './stage.ts'

const userHeader = 'impersonate-user'
const groupHeader = 'impersonate-group'
const uidHeader = 'impersonate-uid'
const extraPrefix = 'impersonate-extra-'
const serviceAccountPrefix = 'system:serviceaccount:'

interface Wanted {
  readonly user: UserInfo
  readonly checks: readonly Partial<AuthorizationAttributes>[]
}

export function impersonationStage(authorizers: readonly Authorizer[]): Stage {
  return {
    name: 'impersonation',
    handle(request, next) {
      const wanted = asksForIt(request) ? wantedUser(request) : undefined
      return wanted ? impersonated(wanted, request, next) : next(request)
    },
  }

  async function impersonated(wanted: Wanted, request: ServerRequest, next: Handler) {
    for (const check of wanted.checks) {
      const attributes = attributesOf(request.user as UserInfo, check)
      const result = await authorize(authorizers, attributes)
      if (result.decision !== 'allow') throw forbiddenError(attributes, result.reason)
    }
    decided(request, 'impersonation', wanted.user.name, 0)
    request.user = wanted.user
    return next(request)
  }
}

function attributesOf(user: UserInfo, check: Partial<AuthorizationAttributes>): AuthorizationAttributes {
  const base = { user, verb: 'impersonate', isResourceRequest: true, path: '', namespace: '', apiGroup: '', apiVersion: 'v1', subresource: '', name: '' }
  return { ...base, resource: 'users', ...check }
}

function asksForIt({ headers }: ServerRequest): boolean {
  for (const header in headers) if (header.startsWith('impersonate-')) return true
  return false
}

function wantedUser(request: ServerRequest): Wanted | undefined {
  const name = values(request, userHeader)[0] ?? ''
  const asked = values(request, groupHeader)
  const uid = values(request, uidHeader)[0] ?? ''
  const extra = extraOf(request)
  if (name === '') {
    if (asked.length === 0 && uid === '' && Object.keys(extra).length === 0) return undefined
    throw badRequest('requested impersonation of groups, uid or extra values without impersonating a user')
  }
  const checks: Partial<AuthorizationAttributes>[] = []
  const groups = [...asked]
  if (name.startsWith(serviceAccountPrefix)) {
    const [namespace = '', account = ''] = name.slice(serviceAccountPrefix.length).split(':')
    checks.push({ resource: 'serviceaccounts', namespace, name: account })
    if (asked.length === 0) groups.push('system:serviceaccounts', `system:serviceaccounts:${namespace}`)
  } else checks.push({ resource: 'users', name })
  for (const group of asked) checks.push({ resource: 'groups', name: group })
  if (uid) checks.push({ resource: 'uids', apiGroup: 'authentication.k8s.io', name: uid })
  for (const [key, all] of Object.entries(extra)) {
    for (const value of all) checks.push({ resource: 'userextras', apiGroup: 'authentication.k8s.io', subresource: key, name: value })
  }
  if (name === 'system:anonymous') {
    if (!groups.includes('system:unauthenticated')) groups.push('system:unauthenticated')
  } else if (!groups.includes('system:authenticated') && !groups.includes('system:unauthenticated')) groups.push('system:authenticated')
  return { user: { name, groups, ...(uid ? { uid } : {}), ...(Object.keys(extra).length > 0 ? { extra } : {}) }, checks }
}

function extraOf(request: ServerRequest): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = {}
  for (const header of Object.keys(request.headers)) {
    if (!header.startsWith(extraPrefix)) continue
    extra[unescapeHeaderKey(header.slice(extraPrefix.length))] = values(request, header)
  }
  return extra
}

function unescapeHeaderKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

function values(request: ServerRequest, header: string): readonly string[] {
  const value = request.headers[header]
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}
