/**
 * Users, roles and the decision what a user may do (L2). Changes go one after the other: each is durable before it has an effect.
 * Upstream: etcd server/auth/store.go (v3.6.16).
 */
import type { Clock } from '#base/clock'
import { GrpcRefusal } from '#grpc/grpcService'
import type { AuthChange, LocalStore } from '../../store.ts'
import { notServed, refusal, refusalOf } from '../refusals.ts'
import { createTurns } from '../turns.ts'
import { KeyRanges } from './keyRanges.ts'
import { mostPasswordBytes, type Passwords } from './passwords.ts'
import {
  applyChange,
  enabledEntry,
  noAuthData,
  noRole,
  noUser,
  type Permission,
  type Role,
  revisionEntry,
  roleEntry,
  sortedByBytes,
  type User,
  userEntry,
} from './records.ts'
import { Tokens } from './tokens.ts'

export interface AuthStoreOptions {
  readonly store: LocalStore
  readonly clock: Clock
  readonly passwords: Passwords
  readonly tokenTtlMs: number
}

/** A user, at the revision of the users and roles at which it was identified. */
export interface AuthInfo {
  readonly user: string
  readonly revision: number
}

/** Of both the user and the role that may do everything. */
const root = 'root'
/** Keys of LMDB are short. */
const mostNameBytes = 512

interface Access {
  readonly read: KeyRanges
  readonly write: KeyRanges
}

/** Called where a change is decided: throws when the caller may not make it. */
export type Permit = () => void

export class AuthStore {
  readonly #store: LocalStore
  readonly #passwords: Passwords
  readonly #tokens: Tokens
  readonly #data = noAuthData()
  readonly #turns = createTurns()
  /** By user; emptied by each change. */
  readonly #access = new Map<string, Access>()
  #lastToken = 0

  constructor({ store, clock, passwords, tokenTtlMs }: AuthStoreOptions) {
    this.#store = store
    this.#passwords = passwords
    this.#tokens = new Tokens(clock, tokenTtlMs)
    for (const entry of store.authEntries()) applyChange(this.#data, entry)
  }

  get isEnabled(): boolean {
    return this.#data.isEnabled
  }

  get revision(): number {
    return this.#data.revision
  }

  /** @throws GrpcRefusal when the token is none of a user, or has ended */
  infoOfToken(token: string): AuthInfo {
    const user = this.#tokens.userOf(token)
    if (user === undefined) throw refusal('invalidAuthToken')
    return this.infoOf(user)
  }

  infoOf(user: string): AuthInfo {
    return { user, revision: this.#data.revision }
  }

  // Decisions. Each throws a GrpcRefusal, and allows everything while users are not needed.

  needUser(info: AuthInfo | undefined): void {
    if (this.isEnabled && !info) throw refusal('userEmpty')
  }

  needRoot(info: AuthInfo | undefined): void {
    if (!this.isEnabled) return
    if (!info) throw refusal('userEmpty')
    const user = this.#data.users.get(info.user)
    if (!user) throw refusal('userNotFound')
    if (!user.roles.includes(root)) throw refusal('permissionDenied')
  }

  isRoot(info: AuthInfo | undefined): boolean {
    return !this.isEnabled || this.hasRole(info, root)
  }

  needRead(info: AuthInfo | undefined, key: string, rangeEnd = ''): void {
    this.#need('read', info, key, rangeEnd)
  }

  needWrite(info: AuthInfo | undefined, key: string, rangeEnd = ''): void {
    this.#need('write', info, key, rangeEnd)
  }

  hasRole(info: AuthInfo | undefined, role: string): boolean {
    return info !== undefined && this.#data.users.get(info.user)?.roles.includes(role) === true
  }

  #need(kind: keyof Access, info: AuthInfo | undefined, key: string, rangeEnd: string): void {
    if (!this.isEnabled) return
    if (!info) throw refusal('userEmpty')
    if (info.revision < this.#data.revision) throw refusal('authOldRevision')
    const user = this.#data.users.get(info.user)
    if (!user) throw refusal('permissionDenied')
    if (user.roles.includes(root)) return
    if (!this.#accessOf(user)[kind].includes(key, rangeEnd)) throw refusal('permissionDenied')
  }

  #accessOf(user: User): Access {
    const known = this.#access.get(user.name)
    if (known) return known
    const permissions = user.roles.flatMap((role) => this.#data.roles.get(role)?.permissions ?? [])
    const access = {
      read: new KeyRanges(permissions.filter(({ type }) => type !== 'WRITE')),
      write: new KeyRanges(permissions.filter(({ type }) => type !== 'READ')),
    }
    this.#access.set(user.name, access)
    return access
  }

  // Users and roles.

  /** The token of a user. */
  async authenticate(name: string, password: string): Promise<string> {
    for (;;) {
      if (!this.isEnabled) throw refusal('authNotEnabled')
      const checkedAt = this.#data.revision
      const user = this.#data.users.get(name)
      if (!user) throw refusal('authFailed')
      if (user.hasNoPassword) throw noPasswordUser()
      if (!(await this.#passwords.matches(password, user.password))) throw refusal('authFailed')
      // The password may have changed meanwhile.
      if (checkedAt === this.#data.revision) return this.#tokens.assign(name, ++this.#lastToken)
    }
  }

  enable(permit: Permit): Promise<void> {
    return this.#change(permit, () => {
      if (this.isEnabled) return []
      const user = this.#data.users.get(root)
      if (!user) throw refusal('rootUserNotExist')
      if (!user.roles.includes(root)) throw refusal('rootRoleNotExist')
      return [enabledEntry(true)]
    })
  }

  async disable(permit: Permit): Promise<void> {
    await this.#change(permit, () => (this.isEnabled ? [enabledEntry(false), this.#nextRevision()] : []))
    if (!this.isEnabled) this.#tokens.endAll()
  }

  async addUser(permit: Permit, name: string, password: string, hasNoPassword: boolean): Promise<void> {
    const hash = hasNoPassword ? '' : await this.#hash(password)
    await this.#change(permit, () => {
      if (name === '') throw refusal('userEmpty')
      checkName(name)
      if (this.#data.users.has(name)) throw refusal('userAlreadyExist')
      return [userEntry({ name, password: hash, roles: [], hasNoPassword }), this.#nextRevision()]
    })
  }

  async deleteUser(permit: Permit, name: string): Promise<void> {
    await this.#change(permit, () => {
      if (this.isEnabled && name === root) throw refusal('invalidAuthManagement')
      this.#user(name)
      return [noUser(name), this.#nextRevision()]
    })
    this.#tokens.endOf(name)
  }

  async changePassword(permit: Permit, name: string, password: string): Promise<void> {
    // As etcd: an empty password is no hash, and every login as this user fails.
    const hash = password === '' ? '' : await this.#hash(password)
    await this.#change(permit, () => {
      const user = this.#user(name)
      return [userEntry({ ...user, password: user.hasNoPassword ? '' : hash }), this.#nextRevision()]
    })
    this.#tokens.endOf(name)
  }

  grantRole(permit: Permit, name: string, role: string): Promise<void> {
    return this.#change(permit, () => {
      const user = this.#user(name)
      if (role !== root) this.#role(role)
      if (user.roles.includes(role)) return []
      return [userEntry({ ...user, roles: sortedByBytes([...user.roles, role]) }), this.#nextRevision()]
    })
  }

  revokeRole(permit: Permit, name: string, role: string): Promise<void> {
    return this.#change(permit, () => {
      if (this.isEnabled && name === root && role === root) throw refusal('invalidAuthManagement')
      const user = this.#user(name)
      if (!user.roles.includes(role)) throw refusal('roleNotGranted')
      return [userEntry(withoutRole(user, role)), this.#nextRevision()]
    })
  }

  rolesOf(name: string): readonly string[] {
    return this.#user(name).roles
  }

  userNames(): string[] {
    return sortedByBytes(this.#data.users.keys())
  }

  addRole(permit: Permit, name: string): Promise<void> {
    return this.#change(permit, () => {
      if (name === '') throw refusal('roleEmpty')
      checkName(name)
      if (this.#data.roles.has(name)) throw refusal('roleAlreadyExist')
      return [roleEntry({ name, permissions: [] }), this.#nextRevision()]
    })
  }

  deleteRole(permit: Permit, name: string): Promise<void> {
    return this.#change(permit, () => {
      if (this.isEnabled && name === root) throw refusal('invalidAuthManagement')
      this.#role(name)
      const owners = [...this.#data.users.values()].filter(({ roles }) => roles.includes(name))
      return [noRole(name), ...owners.map((user) => userEntry(withoutRole(user, name))), this.#nextRevision()]
    })
  }

  roleNames(): string[] {
    return sortedByBytes(this.#data.roles.keys())
  }

  permissionsOf(name: string): readonly Permission[] {
    const { permissions } = this.#role(name)
    return name === root ? [{ type: 'READWRITE', key: '', rangeEnd: '\0' }] : permissions
  }

  grantPermission(permit: Permit, name: string, granted: Permission): Promise<void> {
    return this.#change(permit, () => {
      const { key, rangeEnd } = granted
      if (key === '' || (rangeEnd !== '' && rangeEnd !== '\0' && rangeEnd <= key)) throw refusal('invalidAuthManagement')
      const others = this.#role(name).permissions.filter((one) => !isOf(one, key, rangeEnd))
      const at = others.findIndex((one) => one.key > key)
      const permissions = others.toSpliced(at < 0 ? others.length : at, 0, granted)
      return [roleEntry({ name, permissions }), this.#nextRevision()]
    })
  }

  revokePermission(permit: Permit, name: string, key: string, rangeEnd: string): Promise<void> {
    return this.#change(permit, () => {
      const { permissions } = this.#role(name)
      const kept = permissions.filter((one) => !isOf(one, key, rangeEnd))
      if (kept.length === permissions.length) throw refusal('permissionNotGranted')
      return [roleEntry({ name, permissions: kept }), this.#nextRevision()]
    })
  }

  #user(name: string): User {
    const user = this.#data.users.get(name)
    if (!user) throw refusal('userNotFound')
    return user
  }

  #role(name: string): Role {
    const role = this.#data.roles.get(name)
    if (!role) throw refusal('roleNotFound')
    return role
  }

  #hash(password: string): Promise<string> {
    if (Buffer.byteLength(password) > mostPasswordBytes) throw new GrpcRefusal('UNKNOWN', `bcrypt: password length exceeds ${mostPasswordBytes} bytes`)
    return this.#passwords.hash(password)
  }

  #nextRevision(): AuthChange {
    return revisionEntry(this.#data.revision + 1)
  }

  /** @param decide the changes, from what is there when it is this change's turn */
  #change(permit: Permit, decide: () => readonly AuthChange[]): Promise<void> {
    return this.#turns(async () => {
      permit()
      const changes = decide()
      if (changes.length === 0) return
      await this.#store.writeAuth(changes).catch((error: unknown) => {
        throw refusalOf(error)
      })
      for (const change of changes) applyChange(this.#data, change)
      this.#access.clear()
    })
  }
}

const isOf = (permission: Permission, key: string, rangeEnd: string) => permission.key === key && permission.rangeEnd === rangeEnd
const withoutRole = (user: User, role: string): User => ({ ...user, roles: user.roles.filter((one) => one !== role) })

/** As etcd, which has no code for it. */
function noPasswordUser(): GrpcRefusal {
  return new GrpcRefusal('UNKNOWN', 'auth: authentication failed, password was given for no password user')
}

function checkName(name: string): void {
  if (Buffer.byteLength(name) > mostNameBytes) throw notServed(`a name of a user or role has at most ${mostNameBytes} bytes`)
}
