/**
 * Authenticates bootstrap tokens, with which machines join (L3): `id.secret`, stored as a secret in kube-system.
 * Upstream: plugin/pkg/auth/authenticator/token/bootstrap (v1.36).
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secret } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { parseTime } from '#base/time'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import { audienceAgnostic, type TokenAuthenticator } from './tokenAuthenticator.ts'

const form = /^([a-z0-9]{6})\.([a-z0-9]{16})$/
const extraGroup = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/

export function bootstrapTokenAuthenticator(reader: ObjectReader, clock: Clock, apiAudiences: readonly string[]): TokenAuthenticator {
  return audienceAgnostic('bootstraptoken', apiAudiences, (token) => bearerOf(token, reader, clock.now()))
}

function bearerOf(token: string, reader: ObjectReader, nowMs: number): UserInfo | undefined {
  const [, id, wanted] = form.exec(token) ?? []
  if (!id || !wanted) return undefined
  const secret = reader.get<Secret>({ group: '', resource: 'secrets' }, 'kube-system', `bootstrap-token-${id}`)
  if (!secret || secret.metadata.deletionTimestamp || secret.type !== 'bootstrap.kubernetes.io/token') return undefined
  const groups = extraGroups(textOf(secret, 'auth-extra-groups'))
  const good =
    sameText(textOf(secret, 'token-secret'), wanted) &&
    textOf(secret, 'token-id') === id &&
    isLive(textOf(secret, 'expiration'), nowMs) &&
    textOf(secret, 'usage-bootstrap-authentication') === 'true'
  return good && groups ? { name: `system:bootstrap:${id}`, groups: ['system:bootstrappers', ...groups, 'system:authenticated'] } : undefined
}

function textOf(secret: Frozen<Secret>, name: string): string {
  return Buffer.from(ownValue(secret.data, name) ?? '', 'base64').toString()
}

function sameText(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** A time that cannot be read counts as past. */
function isLive(expiration: string, nowMs: number): boolean {
  return expiration === '' || (parseTime(expiration) ?? 0) > nowMs
}

/** Undefined if a group does not begin with system:bootstrappers: the secret could name system:masters. */
function extraGroups(text: string): string[] | undefined {
  const groups = text === '' ? [] : text.split(',').map((group) => group.trim())
  return groups.every((group) => extraGroup.test(group)) ? [...new Set(groups)].sort() : undefined
}
