/** HTTP and TCP requests from the node's network (L3), as probes and hooks make them: no redirects to other hosts, any certificate. Upstream: kubelet/probe/http (v1.36). */
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect as tlsConnect } from 'node:tls'
import { hostPort } from '#api/machinery/ip'
import { emptyMap } from '#base/bareMap'
import type { KubeletHost } from './host.ts'

export interface HttpTarget {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly https: boolean
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  /** Such as kube-probe/MAJOR.MINOR. */
  readonly userAgent: string
}

export interface HttpResponse {
  readonly status: number
  readonly body: string
}

const maxBodyBytes = 10 * 1024

/** GETs the target over a connection of the node. Redirects on the same host are followed, ten at most. */
export async function httpRequest(host: Pick<KubeletHost, 'dial'>, target: HttpTarget, signal: AbortSignal, redirects = 10): Promise<HttpResponse> {
  const socket = await host.dial(target.host, target.port, signal)
  // The request reports errors; later errors of the abandoned connection are ignored.
  socket.on('error', () => {})
  try {
    const response = await send(socket, target, signal)
    const location = response.headers.location
    const status = response.statusCode ?? 0
    const body = await readBody(response)
    if (status < 300 || status >= 400 || !location) return { status, body }
    const from = new URL(`${target.https ? 'https' : 'http'}://${hostPort(target.host, target.port)}${target.path}`)
    const to = new URL(location, from)
    // A redirect to another host counts as the answer: following it would probe a host that is not the container.
    if (to.hostname !== from.hostname) return { status, body }
    if (redirects === 0) throw new Error('stopped after 10 redirects')
    const https = to.protocol === 'https:'
    return await httpRequest(host, { ...target, port: Number(to.port || (https ? 443 : 80)), path: `${to.pathname}${to.search}`, https }, signal, redirects - 1)
  } finally {
    socket.destroy()
  }
}

const canonical = (name: string) => name.toLowerCase().replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())

/** The probe's own headers, several of a name too; an empty value of a standard one takes it away. */
export function requestHeaders({ headers, userAgent }: Pick<HttpTarget, 'headers' | 'userAgent'>): Record<string, string[]> {
  const all: Record<string, string[]> = emptyMap()
  for (const { name, value } of headers) all[canonical(name)] = [...(all[canonical(name)] ?? []), value]
  for (const [name, value] of [
    ['User-Agent', userAgent],
    ['Accept', '*/*'],
  ] as const) {
    if (all[name]?.[0] === '') delete all[name]
    else all[name] ??= [value]
  }
  return { ...all, Connection: ['close'] }
}

function send(socket: Duplex, target: HttpTarget, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = requestHeaders(target)
    // With an agent, even `false`, createConnection would be ignored.
    const options = { method: 'GET', host: target.host, port: target.port, path: target.path, headers, signal }
    const request = target.https
      ? tlsRequest({ ...options, createConnection: () => tlsConnect({ socket, rejectUnauthorized: false }) })
      : plainRequest({ ...options, createConnection: () => socket })
    request.once('error', reject)
    request.once('response', resolve)
    request.end()
  })
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= maxBodyBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBodyBytes).toString()
}
