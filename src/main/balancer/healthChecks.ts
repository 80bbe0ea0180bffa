/**
 * Checks the API servers of a local cluster for the balancer (L5): GET /readyz over TLS, with the cluster's authority, on one connection for each server. The
 * end of that connection is the earliest sign that a server has ended: then it is checked at once.
 */
import https from 'node:https'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { afterCheck, type CheckResult, type Condition, unknown } from './condition.ts'
import type { BalancedServer } from './tcpBalancer.ts'

export interface CheckTimes {
  /** Between two checks of a server that is ready. */
  readonly readyPauseMs: number
  /** Of any other: one that is starting is found soon. */
  readonly otherPauseMs: number
  readonly timeoutMs: number
  /** How long credentials are used before they are read again: reading them costs many times what a check costs, and a dead server is checked often. */
  readonly credentialsMs: number
}

const defaultTimes: CheckTimes = { readyPauseMs: 1000, otherPauseMs: 200, timeoutMs: 2000, credentialsMs: 60_000 }

/** Requests without a credential may be forbidden (--anonymous-auth=false), so a check has one. */
export interface CheckCredentials {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface HealthCheckDeps {
  readonly clock: Clock
  /** Reads them: certificates are renewed, long before they expire. */
  credentials(): Promise<CheckCredentials>
  onCondition(name: string, condition: Condition): void
}

export interface HealthChecks {
  /** Checks all servers until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Checks one server now. */
  checkNow(name: string): void
}

export function createHealthChecks(servers: readonly BalancedServer[], deps: HealthCheckDeps, times = defaultTimes): HealthChecks {
  const wakes = new Map<string, () => void>()
  const credentials = keptFor(times.credentialsMs, deps)
  const follow = async (server: BalancedServer, signal: AbortSignal) => {
    let condition = unknown
    let agent: https.Agent | undefined
    const wake = () => wakes.get(server.name)?.()
    while (!signal.aborted) {
      using due = abortScope(signal)
      // Set before the check: a connection may end during it.
      wakes.set(server.name, () => due.abort())
      const result = await check(server, async () => (agent ??= new https.Agent({ keepAlive: true, maxSockets: 1, ...(await credentials()) })), times, wake)
      if (signal.aborted) break
      if (result !== 'ok') {
        agent?.destroy()
        agent = undefined
      }
      condition = afterCheck(condition, result)
      deps.onCondition(server.name, condition)
      await deps.clock.sleep(condition.state === 'ready' ? times.readyPauseMs : times.otherPauseMs, due.signal).catch(() => {})
    }
    agent?.destroy()
  }
  return {
    run: async (signal) => void (await Promise.all(servers.map((server) => follow(server, signal)))),
    checkNow: (name) => wakes.get(name)?.(),
  }
}

/** Reads the credentials when the last ones that could be read are older than `ms`. */
function keptFor(ms: number, { clock, credentials }: HealthCheckDeps): () => Promise<CheckCredentials> {
  let kept: { readonly found: CheckCredentials; readonly atMs: number } | undefined
  return async () => {
    if (!kept || clock.monotonicMs() - kept.atMs >= ms) kept = { found: await credentials(), atMs: clock.monotonicMs() }
    return kept.found
  }
}

async function check(
  { address, port }: BalancedServer,
  agentOf: () => Promise<https.Agent>,
  { timeoutMs }: CheckTimes,
  onEnd: () => void,
): Promise<CheckResult> {
  let agent: https.Agent
  try {
    agent = await agentOf()
  } catch {
    // The files are being renewed.
    return 'failing'
  }
  return new Promise((resolve) => {
    const request = https.request({ host: address, port, path: '/readyz', agent, timeout: timeoutMs }, (response) => {
      // At its end the response has no socket any more.
      const { socket } = response
      response.resume()
      response.once('error', () => resolve('refused'))
      response.once('end', () => {
        const isOk = response.statusCode === 200
        if (isOk && !request.reusedSocket) socket.once('close', onEnd)
        resolve(isOk ? 'ok' : 'failing')
      })
    })
    request.once('timeout', () => {
      resolve('silent')
      request.destroy()
    })
    request.once('error', () => resolve('refused'))
    request.end()
  })
}
