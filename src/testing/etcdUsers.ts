/** A served store in memory for the tests of users and roles: calls go through the checks, without a connection. */
import { tmpdir } from 'node:os'
import { VirtualClock } from '#base/virtualClock'
import { GrpcRefusal, type StreamCall } from '#grpc/grpcService'
import { createMemoryStore } from '#store/drivers/memory'
import type { Passwords } from '#store/serve/auth/passwords'
import { etcdServices } from '#store/serve/etcdApi'

/** The hash of a password is the password behind a mark. */
export const plainPasswords: Passwords = {
  hash: async (password) => `hash of ${password}`,
  matches: async (password, hash) => hash === `hash of ${password}`,
}

export interface Caller {
  readonly token?: string | undefined
  readonly commonName?: string | undefined
  readonly [name: string]: string | undefined
}

export const tokenTtlMs = 300_000

export function createWorld({ passwords = plainPasswords, namesInCertificates = true } = {}) {
  const clock = new VirtualClock()
  const store = createMemoryStore({ clock })
  const ids = { name: 'test', clientUrls: [], memberId: 1, clusterId: 2 }
  const limits = { maxOperations: 128, maxRequestBytes: 1 << 20, quotaBytes: 0, progressNotifyMs: 600_000 }
  const { services, auth } = etcdServices({ store, clock, ...ids, ...limits, passwords, tokenTtlMs, namesInCertificates, temporaryFolder: tmpdir() })
  const clientOf = (caller: Caller) => ({ metadata: (name: string) => caller[name], commonName: () => caller.commonName })
  const serviceOf = (name: string) => services.find(({ service }) => service === `etcdserverpb.${name}`)

  /** The answer; the text of the refusal where the call is refused. */
  async function call<Answer = Record<string, unknown>>(method: string, request: object, caller: Caller = {}): Promise<Answer | string> {
    const [service = '', name = ''] = method.split('.')
    const found = serviceOf(service)
    try {
      if (found?.streams?.[name]) return (await stream(found.streams[name], request, caller)) as Answer
      return (await found?.methods?.[name]?.(request as never, clientOf(caller))) as Answer
    } catch (error) {
      if (error instanceof GrpcRefusal) return error.message
      throw error
    }
  }

  /** The first message of a stream with one request. */
  async function stream(handle: (call: StreamCall<never>) => Promise<void>, request: object, caller: Caller): Promise<unknown> {
    const left = new AbortController()
    const message = await new Promise<{ readonly cancelReason?: string } | undefined>((resolve, reject) => {
      const running = handle({
        client: clientOf(caller),
        requests: (async function* () {
          yield request as never
        })(),
        signal: left.signal,
        send: resolve,
        queuedBytes: 0,
        drained: async () => {},
      })
      running.then(() => resolve(undefined), reject)
    })
    left.abort()
    return message?.cancelReason || message
  }

  async function login(name: string, password: string): Promise<string> {
    const answer = await call<{ readonly token: string }>('Auth.Authenticate', { name, password })
    if (typeof answer === 'string') throw new Error(answer)
    return answer.token
  }

  /** Adds users with their name as password, and the roles of each with read and write of the key range that it names. */
  async function enable(users: Readonly<Record<string, readonly string[]>>): Promise<void> {
    const all: Readonly<Record<string, readonly string[]>> = { root: ['root'], ...users }
    const roles = new Set(Object.values(all).flat())
    for (const role of roles) {
      await call('Auth.RoleAdd', { name: role })
      const [kind = '', key = '', rangeEnd = ''] = role.split(':')
      if (role !== 'root')
        await call('Auth.RoleGrantPermission', { name: role, perm: { permType: kind.toUpperCase(), key: Buffer.from(key), rangeEnd: Buffer.from(rangeEnd) } })
    }
    for (const [name, own] of Object.entries(all)) {
      await call('Auth.UserAdd', { name, password: name, options: null })
      for (const role of own) await call('Auth.UserGrantRole', { name, role })
    }
    const answer = await call('Auth.AuthEnable', {})
    if (typeof answer === 'string') throw new Error(answer)
  }

  return { clock, store, auth, services, call, login, enable }
}
