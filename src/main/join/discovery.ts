/**
 * Finds out which cluster an address leads to (L5): reads the cluster's description without trust, checks it, and reads it again over a connection that its
 * authority vouches for. Upstream: kubeadm's discovery by token (v1.36).
 */
import https from 'node:https'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { type BootstrapToken, signedDescription, type TrustedCluster, trustedCluster } from './verifyClusterInfo.ts'

const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
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
  readonly pins: readonly string[]
  readonly clock: Clock
}

/** @throws CommandError timeout for an address that does not answer; notFound for an unknown token; conflict for a cluster that is another one */
export async function discoverCluster({ place, token, pins, clock }: DiscoveryOptions): Promise<TrustedCluster> {
  const first = await readPatiently(place, token, clock)
  const kubeconfig = signedDescription(first, token)
  const cluster = trustedCluster(kubeconfig, pins)
  if (pins.length === 0) return cluster
  const { data } = await read(place, clock, cluster.ca).catch((error: unknown) => {
    throw new CommandError('conflict', `the server's certificate was not issued by the cluster's authority: ${messageOf(error)}`, { cause: error })
  })
  if (data.kubeconfig !== kubeconfig)
    throw new CommandError('conflict', 'the cluster described itself differently over the connection that its authority vouches for')
  return cluster
}

async function readPatiently(place: Place, token: BootstrapToken, clock: Clock): Promise<Readonly<Record<string, string>>> {
  const deadline = clock.monotonicMs() + patienceMs
  for (;;) {
    const answer = await read(place, clock).catch((error: unknown) => {
      if (error instanceof CommandError) throw error
      return messageOf(error)
    })
    const isSigned = typeof answer !== 'string' && Object.hasOwn(answer.data, `jws-kubeconfig-${token.id}`)
    if (typeof answer !== 'string' && (isSigned || clock.monotonicMs() > deadline)) return answer.data
    if (typeof answer === 'string' && clock.monotonicMs() > deadline) {
      throw new CommandError('timeout', `no API server answers at ${place.host}:${place.port}: ${answer}`, {
        hint: 'check the address, the port and the firewall',
      })
    }
    await clock.sleep(pauseMs)
  }
}

/** @param ca undefined: the certificate is not checked @throws CommandError for an answer that does not change soon, Error for none */
async function read({ host, port }: Place, clock: Clock, ca?: string): Promise<{ readonly data: Readonly<Record<string, string>> }> {
  const { status, body, date } = await get({ host, port, path, ...(ca === undefined ? { rejectUnauthorized: false } : { ca }) })
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
  const { data = {} } = JSON.parse(body) as { readonly data?: Readonly<Record<string, string>> }
  return { data }
}

function get(options: https.RequestOptions): Promise<{ readonly status: number; readonly body: string; readonly date: string }> {
  return new Promise((resolve, reject) => {
    const request = https.get({ ...options, agent: false, timeout: requestMs }, (response) => {
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > mostBytes) request.destroy(new Error(`the answer has more than ${mostBytes} bytes`))
        else chunks.push(chunk)
      })
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), date: response.headers.date ?? '' }))
    })
    request.once('timeout', () => request.destroy(new Error(`no answer within ${requestMs / 1000} s`)))
    request.once('error', reject)
  })
}
