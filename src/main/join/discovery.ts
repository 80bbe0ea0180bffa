/**
 * Finds out which cluster an address leads to (L5): reads the cluster's description without trust, checks it, and reads it again over a connection that its
 * authority vouches for. Upstream: kubeadm's discovery by token (v1.36).
 */
import https from 'node:https'
import type { TLSSocket } from 'node:tls'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { BootstrapToken } from '#cli/bootstrapToken'
import { CommandError } from '#cli/exitCodes'
import { type AcceptedAuthorities, signedDescription, type TrustedCluster, trustedCluster } from './verifyClusterInfo.ts'

const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
/** For a request and its whole answer. */
const requestMs = 5000
/** A server may be starting, and the signature of a new token comes a moment after the token. */
const patienceMs = 15_000
const pauseMs = 500
const mostBytes = 1024 * 1024
/** Certificates are valid from five minutes before they are made. */
const toleratedSkewMs = 5 * 60_000

export interface Place {
  readonly host: string
  readonly port: number
}

export interface DiscoveryOptions {
  readonly place: Place
  readonly token: BootstrapToken
  readonly authorities: AcceptedAuthorities
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * @throws CommandError timeout for an address that does not answer; notFound for an unknown token; conflict for a cluster that is another one. The signal's
 * reason when it aborts
 */
export async function discoverCluster(options: DiscoveryOptions): Promise<TrustedCluster> {
  const { token, authorities } = options
  const kubeconfig = signedDescription(await readPatiently(options), token)
  const cluster = trustedCluster(kubeconfig, authorities)
  if (authorities === 'any') return cluster
  const again = await readPatiently(options, cluster.ca)
  if (again.kubeconfig !== kubeconfig)
    throw new CommandError('conflict', 'the cluster described itself differently over the connection that its authority vouches for')
  return cluster
}

/** What the ConfigMap holds. */
type Data = Readonly<Record<string, string>>

/** @param ca undefined: the server's certificate is not checked */
async function readPatiently(options: DiscoveryOptions, ca?: string): Promise<Data> {
  const { place, token, clock, signal } = options
  const deadline = clock.monotonicMs() + patienceMs
  for (;;) {
    const answer = await read(options, ca).catch((error: unknown) => {
      if (error instanceof CommandError) throw error
      return messageOf(error)
    })
    const isLate = clock.monotonicMs() > deadline
    if (typeof answer === 'string') {
      if (isLate) {
        throw new CommandError('timeout', `no API server answers at ${place.host}:${place.port}: ${answer}`, {
          hint: 'check the address, the port and the firewall',
        })
      }
    } else if (isLate || Object.hasOwn(answer, `jws-kubeconfig-${token.id}`)) return answer
    await clock.sleep(pauseMs, signal)
  }
}

/** @throws CommandError for an answer that does not change soon, Error for none */
async function read({ place: { host, port }, clock, signal }: DiscoveryOptions, ca?: string): Promise<Data> {
  using limit = deadlineScope({ clock, ms: requestMs, reason: () => new Error(`no whole answer within ${requestMs / 1000} s`) }, signal)
  const trust = ca === undefined ? { rejectUnauthorized: false } : { ca }
  const { status, body, date } = await get({ host, port, path, agent: false, ...trust }, limit.signal)
  const skewMs = Math.abs(Date.parse(date) - clock.now())
  if (skewMs > toleratedSkewMs) {
    throw new CommandError('unmetPrerequisite', `the clock of this machine and the server's differ by ${Math.round(skewMs / 1000)} s`, {
      hint: 'set the clock: certificates are not valid before they were made',
    })
  }
  if (status === 401 || status === 403) {
    throw new CommandError('unmetPrerequisite', 'the cluster does not let machines that join read its description (ConfigMap kube-public/cluster-info)')
  }
  if (status !== 200) throw new Error(`it answered ${status}`)
  const { data } = JSON.parse(body) as { readonly data?: unknown }
  // Nothing vouches for the server yet: it may send anything.
  return Object.fromEntries(Object.entries(data ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly date: string
}

/** @throws CommandError conflict for a certificate that the authority has not issued for this host; Error for no answer, the signal's reason when it aborts */
function get(options: https.RequestOptions, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = https.get({ ...options, signal }, (response) => {
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > mostBytes) request.destroy(new Error(`the answer has more than ${mostBytes} bytes`))
        else chunks.push(chunk)
      })
      response.once('error', fail)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), date: response.headers.date ?? '' }))
    })
    request.once('error', fail)

    function fail(error: Error): void {
      const isUntrusted = options.rejectUnauthorized !== false && (request.socket as TLSSocket | null)?.authorizationError
      if (isUntrusted)
        reject(new CommandError('conflict', `the server's certificate was not issued by the cluster's authority: ${error.message}`, { cause: error }))
      else reject(signal.aborted ? signal.reason : error)
    }
  })
}
