/** Users and roles as etcd stores them (L2, pure): the messages of authpb, byte for byte. Upstream: etcd api/v3 authpb/auth.proto, server/storage/schema (v3.6). */
import { etcdProto } from '#grpc/proto/etcd'
import { loadMessage } from '#grpc/protoMessage'
import type { AuthChange, AuthEntry } from '../../store.ts'

export interface User {
  readonly name: string
  /** A hash of bcrypt; empty for a user without a password. */
  readonly password: string
  /** Sorted by their bytes. */
  readonly roles: readonly string[]
  readonly hasNoPassword: boolean
}

export interface Permission {
  readonly type: 'READ' | 'WRITE' | 'READWRITE'
  readonly key: string
  /** Empty: the key alone; '\0': all keys from it on. */
  readonly rangeEnd: string
}

export interface Role {
  readonly name: string
  /** Sorted by their keys. */
  readonly permissions: readonly Permission[]
}

export interface PermissionMessage {
  readonly permType?: Permission['type'] | number | undefined
  readonly key?: Uint8Array | undefined
  readonly rangeEnd?: Uint8Array | undefined
}

interface UserMessage {
  readonly name: Buffer
  readonly password: Buffer
  readonly roles: readonly string[]
  readonly options: { readonly noPassword: boolean } | null
}

interface RoleMessage {
  readonly name: Buffer
  readonly keyPermission: readonly PermissionMessage[]
}

const userCodec = loadMessage(etcdProto, 'etcdserverpb.User')
const roleCodec = loadMessage(etcdProto, 'etcdserverpb.Role')
const enabledKey = 'authEnabled'
const revisionKey = 'authRevision'

/** The key of a bucket for a name. */
const keyOf = (name: string) => Buffer.from(name).toString('latin1')
const bytesOf = (text: string) => (text === '' ? undefined : Buffer.from(text, 'latin1'))
const textOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('latin1')

export function userEntry({ name, password, roles, hasNoPassword }: User): AuthEntry {
  const options = hasNoPassword ? { noPassword: true } : {}
  return { bucket: 'authUsers', key: keyOf(name), value: userCodec.encode({ name: Buffer.from(name), password: bytesOf(password), roles, options }) }
}

export function roleEntry({ name, permissions }: Role): AuthEntry {
  return { bucket: 'authRoles', key: keyOf(name), value: roleCodec.encode({ name: Buffer.from(name), keyPermission: permissions.map(permissionMessage) }) }
}

export const noUser = (name: string): AuthChange => ({ bucket: 'authUsers', key: keyOf(name) })
export const noRole = (name: string): AuthChange => ({ bucket: 'authRoles', key: keyOf(name) })

export function enabledEntry(isEnabled: boolean): AuthEntry {
  return { bucket: 'auth', key: enabledKey, value: Buffer.of(isEnabled ? 1 : 0) }
}

export function revisionEntry(revision: number): AuthEntry {
  const value = Buffer.alloc(8)
  value.writeBigUInt64BE(BigInt(revision))
  return { bucket: 'auth', key: revisionKey, value }
}

/** What a message leaves out is its default: etcd writes no defaults. */
export function permissionMessage({ type, key, rangeEnd }: Permission): PermissionMessage {
  return { permType: type === 'READ' ? undefined : type, key: bytesOf(key), rangeEnd: bytesOf(rangeEnd) }
}

/** Undefined for a type that etcd 3.6 does not have. */
export function permissionOf({ permType, key, rangeEnd }: PermissionMessage): Permission | undefined {
  return typeof permType === 'string' ? { type: permType, key: textOf(key), rangeEnd: textOf(rangeEnd) } : undefined
}

export interface AuthData {
  isEnabled: boolean
  /** 1 before the first change. */
  revision: number
  readonly users: Map<string, User>
  readonly roles: Map<string, Role>
}

export const noAuthData = (): AuthData => ({ isEnabled: false, revision: 1, users: new Map(), roles: new Map() })

/** @throws Error for an entry that etcd does not write */
export function applyChange(data: AuthData, { bucket, key, value }: AuthChange): void {
  const name = Buffer.from(key, 'latin1').toString()
  if (bucket === 'authUsers') set(data.users, name, value && userOf(value))
  else if (bucket === 'authRoles') set(data.roles, name, value && roleOf(value))
  else if (key === enabledKey) data.isEnabled = value?.[0] === 1
  else if (key === revisionKey && value) data.revision = Number(Buffer.from(value).readBigUInt64BE())
}

function set<T>(all: Map<string, T>, name: string, value: T | undefined): void {
  if (value) all.set(name, value)
  else all.delete(name)
}

function userOf(bytes: Uint8Array): User {
  const { name, password, roles, options } = userCodec.decode(bytes) as UserMessage
  return { name: name.toString(), password: textOf(password), roles, hasNoPassword: options?.noPassword ?? false }
}

function roleOf(bytes: Uint8Array): Role {
  const { name, keyPermission } = roleCodec.decode(bytes) as RoleMessage
  return { name: name.toString(), permissions: keyPermission.flatMap((one) => permissionOf(one) ?? []) }
}

/** By their bytes, as Go compares texts. */
export function sortedByBytes(names: Iterable<string>): string[] {
  return [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}
